// Package openai speaks the chat completions protocol, to OpenAI and to every server that has adopted it: vLLM, llama.cpp,
// Ollama, gateways.
//
// It requires little of those servers. It makes up for missing call ids, usage, finish reasons and call indexes; it never
// accepts a stream that ends without a sign of completion. If a server refuses a request that has a part it could do without,
// such as an answer's schema, the model asks again without it, and omits it from then on if that was answered.
package openai

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/internal/upstream"
	"github.com/waggle-dev/waggle/services/model/toolform"
)

// Model is one model of one server.
type Model struct {
	preset Preset
	name   string
	url    string
	header http.Header
	server server
	habits upstream.Habits
	forms  toolform.Forms
	client *upstream.Client
}

var _ model.Model = (*Model)(nil)

// Provider opens the models of a preset, for specifications of the form "PREFIX:NAME".
func Provider(p Preset) model.Provider {
	return model.Provider{Prefix: p.Prefix, Named: true, Open: func(name string, env model.Env) (model.Model, error) {
		return New(p, name, env)
	}}
}

// New returns the model that the server knows by name. It reads env only, never the process' environment. An error names the
// setting that is missing or wrong.
func New(p Preset, name string, env model.Env) (*Model, error) {
	access := env.Access[p.Prefix]
	if err := p.check(access); err != nil {
		return nil, err
	}
	u, err := access.URL(p.BaseURL, p.path(access, "chat/completions"))
	if err != nil {
		return nil, fmt.Errorf("providers.%s: %w", p.Prefix, err)
	}
	header, err := access.Header()
	if err != nil {
		return nil, fmt.Errorf("providers.%s: %w", p.Prefix, err)
	}
	client, err := upstream.New(access, env)
	if err != nil {
		return nil, fmt.Errorf("providers.%s: %w", p.Prefix, err)
	}
	p.authorize(header, access)
	m := &Model{
		preset: p, name: name, url: u.String(), header: header, client: client,
		server: server{provider: upstream.Provider("openai", u), vendor: p.Completion || u.Hostname() == "api.openai.com"},
	}
	m.habits.Expect(p.Refuses...)
	return m, nil
}

// Name implements model.Model.
func (m *Model) Name() string { return m.preset.Prefix + ":" + m.name }

// Close implements model.Model.
func (m *Model) Close() error { m.client.Close(); return nil }

// Generate implements model.Model.
func (m *Model) Generate(ctx context.Context, req model.Request, to model.Listener) (model.Reply, error) {
	var a *answer
	var omitted []string
	asked := req.Pick(m.preset.Prefix, m.name)
	tools, out := m.forms.Fit(req.Tools, m.form(asked))
	req.Tools = tools
	sink, err := m.client.Do(ctx, to, func(ctx context.Context, s *upstream.Sink) (err error) {
		omitted, err = m.habits.Ask(asked, func(refusal string) []upstream.Option { return m.server.options(req, refusal) }, func(without upstream.Without) error {
			a = &answer{sink: s}
			return m.attempt(ctx, m.server.request(asked, req, without), a)
		})
		return err
	})
	if err != nil {
		return model.Reply{}, err
	}
	reply, err := a.reply(asked, m.server.provider, req)
	if err != nil {
		return model.Reply{}, m.client.Failure(err)
	}
	if slices.Contains(omitted, optImages) {
		_, reply.Unseen = req.Blind()
	}
	reply.LeftOut = append(out, upstream.LeftOut(req, omitted)...)
	if slices.Contains(omitted, optTools) && len(req.Tools) > 0 {
		reply.LeftOut = append(reply.LeftOut, model.LeftOut{Reason: "the model's service takes no tools for this model"})
	}
	return m.client.Answer(sink, reply)
}

// form returns the form of tools that the server takes for a model. Gateways pass tools on to Gemini as they are.
func (m *Model) form(name string) toolform.Dialect {
	if m.preset.Prefix == Gemini.Prefix || strings.Contains(strings.ToLower(name), "gemini") {
		return toolform.Gemini
	}
	return toolform.OpenAI
}

// attempt makes one request and reads its stream to the end.
func (m *Model) attempt(ctx context.Context, asked request, a *answer) error {
	body, err := m.client.Encode(asked)
	if err != nil {
		return err
	}
	over := false
	contentType, err := m.client.Stream(ctx, m.url, m.header, body, func(e upstream.Event) (done bool, err error) {
		over, err = a.event(e)
		return over, err
	})
	if err != nil || over {
		return err
	}
	return a.end(contentType)
}
