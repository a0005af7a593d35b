// Package openai speaks the chat completions protocol, to OpenAI and to every server that has adopted it: vLLM, llama.cpp,
// Ollama, gateways.
//
// It requires little of those servers. It makes up for missing call ids, usage, finish reasons and call indexes; it never
// accepts a stream that ends without a sign of completion. If a server refuses a request that has a part it could do without,
// such as an answer's schema, the model asks again without it, and omits it from then on if that was answered.
package openai

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/internal/upstream"
)

const (
	prefix  = "openai"
	baseURL = "https://api.openai.com/v1"
)

var errNoKey = errors.New("OPENAI_API_KEY is not set; without it OPENAI_BASE_URL must name a server that wants none")

// Model is one model of one server.
type Model struct {
	prefix, name string
	provider     string // the server, for what it wants back
	url          string
	header       http.Header
	vendor       bool // the server is OpenAI's own
	habits       upstream.Habits
	client       *upstream.Client
}

var _ model.Model = (*Model)(nil)

// Provider opens models for specifications of the form "openai:NAME".
func Provider() model.Provider {
	return model.Provider{Prefix: prefix, Named: true, Open: func(name string, env model.Env) (model.Model, error) {
		return New(name, env)
	}}
}

// New returns the model that the server knows by name. It reads env only, never the process' environment.
func New(name string, env model.Env) (*Model, error) {
	base := env.OpenAIBaseURL
	if base == "" {
		if env.OpenAIKey == "" {
			return nil, errNoKey
		}
		base = baseURL
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("OPENAI_BASE_URL is not an http or https address")
	}
	m := &Model{
		prefix: prefix, name: name, provider: upstream.Provider(prefix, u), url: u.JoinPath("chat/completions").String(), header: http.Header{},
		vendor: u.Hostname() == "api.openai.com", client: upstream.New(env.OpenAIKey, env),
	}
	if env.OpenAIKey != "" {
		m.header.Set("Authorization", "Bearer "+env.OpenAIKey)
	}
	return m, nil
}

// Name implements model.Model.
func (m *Model) Name() string { return m.prefix + ":" + m.name }

// Close implements model.Model.
func (m *Model) Close() error { m.client.Close(); return nil }

// Generate implements model.Model.
func (m *Model) Generate(ctx context.Context, req model.Request, to model.Listener) (model.Reply, error) {
	if _, err := m.request(req, nil); err != nil {
		return model.Reply{}, err
	}
	var a *answer
	var omitted []string
	asked := req.Pick(m.prefix, m.name)
	sink, err := m.client.Do(ctx, to, func(ctx context.Context, s *upstream.Sink) (err error) {
		omitted, err = m.habits.Ask(asked, func(refusal string) []upstream.Option { return m.options(req, refusal) }, func(without upstream.Without) error {
			wire, err := m.request(req, without)
			if err != nil {
				return err
			}
			a = &answer{sink: s}
			return m.attempt(ctx, wire, a)
		})
		return err
	})
	if err != nil {
		return model.Reply{}, err
	}
	reply, err := a.reply(asked, m.provider, req)
	if err != nil {
		return model.Reply{}, m.client.Failure(err)
	}
	if slices.Contains(omitted, optImages) {
		_, reply.Unseen = req.Blind()
	}
	reply.LeftOut = upstream.LeftOut(req, omitted)
	if slices.Contains(omitted, optTools) && len(req.Tools) > 0 {
		reply.LeftOut = append(reply.LeftOut, model.LeftOut{Reason: "the model's service takes no tools for this model"})
	}
	return m.client.Answer(sink, reply)
}

// attempt makes one request and reads its stream to the end.
func (m *Model) attempt(ctx context.Context, asked request, a *answer) error {
	over := false
	contentType, err := m.client.Stream(ctx, m.url, m.header, asked, func(e upstream.Event) (done bool, err error) {
		over, err = a.event(e)
		return over, err
	})
	if err != nil || over {
		return err
	}
	return a.end(contentType)
}
