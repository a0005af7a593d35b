package openai

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/waggle-dev/waggle/services/model"
)

// Preset is what is known of one kind of server.
type Preset struct {
	Prefix     string   // of specifications, and the name of its settings
	Env        string   // beginning of the names of its environment variables
	BaseURL    string   // its standard address; empty = base_url has to name one
	Keyless    bool     // it may need no key
	KeyHeader  string   // the header of the key; empty = "Authorization: Bearer"
	Version    string   // path that is added to a base URL without one
	Completion bool     // it takes max_completion_tokens
	Refuses    []string // options that it is known to refuse
}

// The presets. Sources: the vendors' references of their chat completions, read in November 2026.
var (
	Standard   = Preset{Prefix: "openai", Env: "OPENAI", BaseURL: "https://api.openai.com/v1"}
	Azure      = Preset{Prefix: "azure", Env: "AZURE_OPENAI", KeyHeader: "Api-Key", Version: "openai/v1", Completion: true}
	Gemini     = Preset{Prefix: "gemini", Env: "GEMINI", BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai"}
	Mistral    = Preset{Prefix: "mistral", Env: "MISTRAL", BaseURL: "https://api.mistral.ai/v1", Refuses: []string{optAnyID, optAfterTool}}
	DeepSeek   = Preset{Prefix: "deepseek", Env: "DEEPSEEK", BaseURL: "https://api.deepseek.com"}
	OpenRouter = Preset{Prefix: "openrouter", Env: "OPENROUTER", BaseURL: "https://openrouter.ai/api/v1"}
	Ollama     = Preset{Prefix: "ollama", Env: "OLLAMA", BaseURL: "http://127.0.0.1:11434/v1", Keyless: true}
	VLLM       = Preset{Prefix: "vllm", Env: "VLLM", BaseURL: "http://127.0.0.1:8000/v1", Keyless: true}
)

// Presets returns all of them, the standard one first.
func Presets() []Preset {
	return []Preset{Standard, Azure, Gemini, Mistral, DeepSeek, OpenRouter, Ollama, VLLM}
}

// check returns which setting is missing.
func (p Preset) check(a model.Access) error {
	switch {
	case a.BaseURL == "" && p.BaseURL == "":
		return fmt.Errorf("%s_BASE_URL is not set: the address of your resource, such as https://NAME.openai.azure.com", p.Env)
	case a.Key == "" && len(a.Headers) == 0 && a.BaseURL == "" && !p.Keyless:
		return fmt.Errorf("%s_API_KEY is not set; without it %s_BASE_URL must name a server that wants none", p.Env, p.Env)
	}
	return nil
}

// path returns the endpoint below the base URL, with the version that an address of a host alone lacks.
func (p Preset) path(a model.Access, endpoint string) string {
	if _, rest, _ := strings.Cut(a.BaseURL, "://"); p.Version != "" && !strings.Contains(strings.TrimSuffix(rest, "/"), "/") {
		return p.Version + "/" + endpoint
	}
	return endpoint
}

func (p Preset) authorize(h http.Header, a model.Access) {
	name := a.KeyHeader
	if name == "" {
		name = p.KeyHeader
	}
	switch {
	case a.Key == "":
	case name == "":
		h.Set("Authorization", "Bearer "+a.Key)
	default:
		h.Set(name, a.Key)
	}
}

// ModelsURL returns where the server lists its models, with the headers of a request.
func (p Preset) ModelsURL(a model.Access) (string, http.Header, error) {
	u, err := a.URL(p.BaseURL, p.path(a, "models"))
	if err != nil {
		return "", nil, err
	}
	h, err := a.Header()
	if err != nil {
		return "", nil, err
	}
	p.authorize(h, a)
	return u.String(), h, nil
}
