package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/providers"
)

// Providers holds the access to model providers. Each name begins the specifications of its models: "openai:NAME".
type Providers struct {
	OpenAI     Provider `yaml:"openai" env:"OPENAI"`
	Anthropic  Provider `yaml:"anthropic" env:"ANTHROPIC"`
	Azure      Provider `yaml:"azure" env:"AZURE_OPENAI"`
	Gemini     Provider `yaml:"gemini" env:"GEMINI"`
	Mistral    Provider `yaml:"mistral" env:"MISTRAL"`
	DeepSeek   Provider `yaml:"deepseek" env:"DEEPSEEK"`
	OpenRouter Provider `yaml:"openrouter" env:"OPENROUTER"`
	Ollama     Provider `yaml:"ollama" env:"OLLAMA"`
	VLLM       Provider `yaml:"vllm" env:"VLLM"`
}

// Provider is the access to one model provider.
type Provider struct {
	APIKey    Secret   `yaml:"api_key" doc:"Key of the provider."`
	BaseURL   string   `yaml:"base_url" doc:"Another server that speaks the provider's protocol (vLLM, llama.cpp, Ollama, a proxy)."`
	Headers   []Secret `yaml:"headers" doc:"Further headers of each request, each \"Name: value\"."`
	Query     string   `yaml:"query" doc:"Query parameters of each request, such as api-version=2024-10-21. No secrets: use headers."`
	KeyHeader string   `yaml:"key_header" doc:"Header that carries the plain key, such as api-key; empty = the provider's own."`
	Proxy     string   `yaml:"proxy" doc:"Proxy for the provider's requests: an http, https or socks5 URL. Empty = HTTPS_PROXY and NO_PROXY of the environment."`
	Body      string   `yaml:"body" doc:"JSON object with further members of each request, such as {\"reasoning_effort\":\"low\"}."`
}

// All returns the access to each provider, by the name that begins its models' specifications.
func (p *Providers) All() map[string]*Provider {
	return map[string]*Provider{
		"openai": &p.OpenAI, "anthropic": &p.Anthropic, "azure": &p.Azure, "gemini": &p.Gemini, "mistral": &p.Mistral,
		"deepseek": &p.DeepSeek, "openrouter": &p.OpenRouter, "ollama": &p.Ollama, "vllm": &p.VLLM,
	}
}

// Access returns the access as the models take it, with its secrets.
func (p Provider) Access() model.Access {
	a := model.Access{Key: p.APIKey.Reveal(), BaseURL: p.BaseURL, KeyHeader: p.KeyHeader, Query: p.Query, Proxy: p.Proxy, Body: p.Body}
	for _, h := range p.Headers {
		a.Headers = append(a.Headers, h.Reveal())
	}
	return a
}

// Env returns what models are opened with: the access to the providers for which something is set.
func (p *Providers) Env() (env model.Env) {
	for name, one := range p.All() {
		if access := one.Access(); !reflect.ValueOf(access).IsZero() {
			env = env.With(name, access)
		}
	}
	return env
}

// Keyed returns the first provider that has a key, "" without one.
func (p *Providers) Keyed() string {
	all := p.All()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name].APIKey != "" {
			return name
		}
	}
	return ""
}

// redact removes the secrets in addresses.
func (p *Providers) redact() {
	for _, one := range p.All() {
		one.BaseURL, one.Proxy = RedactURLs(one.BaseURL), RedactURLs(one.Proxy)
	}
}

// model validates the model, those that may take its place, and the access to their providers.
func (p *problems) model(c *Config) {
	p.oneModel(c, "model", c.Model)
	for i, spec := range c.Models.Fallbacks {
		p.oneModel(c, fmt.Sprintf("models.fallbacks[%d]", i), spec)
	}
	for name, one := range c.Providers.All() {
		p.provider("providers."+name, one)
	}
}

func (p *problems) oneModel(c *Config, path, spec string) {
	err := providers.Usable(spec, c.Providers.Env())
	if provider, named := model.Provided(spec); named && err != nil && !errors.Is(err, model.ErrSpec) {
		path = "providers." + provider
	}
	if err != nil {
		p.add(path, "%s", err)
	}
}

// provider validates the form of the settings of a provider.
func (p *problems) provider(path string, v *Provider) {
	p.httpURL(path+".base_url", v.BaseURL)
	a := v.Access()
	if _, err := a.ProxyURL(); err != nil {
		p.add(path+".proxy", "%s", err)
	}
	if _, err := a.Header(); err != nil {
		p.add(path+".headers", "%s", err)
	}
	if _, err := a.Members(); err != nil {
		p.add(path+".body", "%s", err)
	}
}
