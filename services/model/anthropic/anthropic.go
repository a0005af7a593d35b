// Package anthropic speaks the messages protocol of Anthropic. To enforce the form of an answer it forces a tool call, whose
// arguments are the answer.
package anthropic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/internal/upstream"
	"github.com/waggle-dev/waggle/services/model/toolform"
)

var errNoKey = errors.New("ANTHROPIC_API_KEY is not set")

// Model is one model of one server.
type Model struct {
	name     string
	provider string // the server, for what it wants back
	url      string
	header   http.Header
	habits   upstream.Habits
	forms    toolform.Forms
	client   *upstream.Client
}

var _ model.Model = (*Model)(nil)

// Provider opens models for specifications of the form "anthropic:NAME".
func Provider() model.Provider {
	return model.Provider{Prefix: prefix, Named: true, Open: func(name string, env model.Env) (model.Model, error) {
		return New(name, env)
	}}
}

// New returns the model that the server knows by name. It reads env only, never the process' environment.
func New(name string, env model.Env) (*Model, error) {
	access := env.Access[prefix]
	if access.Key == "" && len(access.Headers) == 0 {
		return nil, errNoKey
	}
	u, err := access.URL(baseURL, "v1/messages")
	if err != nil {
		return nil, fmt.Errorf("providers.anthropic: %w", err)
	}
	header, err := headers(access)
	if err != nil {
		return nil, fmt.Errorf("providers.anthropic: %w", err)
	}
	client, err := upstream.New(access, env)
	if err != nil {
		return nil, fmt.Errorf("providers.anthropic: %w", err)
	}
	return &Model{name: name, provider: upstream.Provider(prefix, u), url: u.String(), header: header, client: client}, nil
}

func headers(a model.Access) (http.Header, error) {
	h, err := a.Header()
	if err != nil {
		return nil, err
	}
	if h.Get("Anthropic-Version") == "" {
		h.Set("Anthropic-Version", version)
	}
	if a.Key != "" {
		h.Set(cmp.Or(a.KeyHeader, "X-Api-Key"), a.Key)
	}
	return h, nil
}

// ModelsURL returns where the server lists its models, with the headers of a request.
func ModelsURL(a model.Access) (string, http.Header, error) {
	u, err := a.URL(baseURL, "v1/models")
	if err != nil {
		return "", nil, err
	}
	h, err := headers(a)
	return u.String(), h, err
}

// Name implements model.Model.
func (m *Model) Name() string { return prefix + ":" + m.name }

// Close implements model.Model.
func (m *Model) Close() error { m.client.Close(); return nil }

// maxPauses bounds how often a model is asked to continue within one answer.
const maxPauses = 8

// Generate implements model.Model.
func (m *Model) Generate(ctx context.Context, req model.Request, to model.Listener) (model.Reply, error) {
	var a *answer
	var omitted []string
	tools, out := m.forms.Fit(req.Tools, toolform.Anthropic)
	req.Tools = tools
	asked := req.Pick(prefix, m.name)
	sink, err := m.client.Do(ctx, to, func(ctx context.Context, s *upstream.Sink) (err error) {
		for range maxPauses {
			before := a
			omitted, err = m.habits.Ask(asked, func(refusal string) []upstream.Option { return options(req, refusal) }, func(without upstream.Without) error {
				wire, err := requestOf(asked, m.provider, req, without, before)
				if err != nil {
					return err
				}
				a = &answer{sink: s, forced: forced(req)}
				return m.attempt(ctx, wire, a)
			})
			if err != nil {
				return err
			}
			if a.adopt(before); !a.paused() {
				break
			}
		}
		return nil
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
	reply.LeftOut = append(out, upstream.LeftOut(req, omitted)...)
	return m.client.Answer(sink, reply)
}

// attempt makes one request and reads its stream to the end.
func (m *Model) attempt(ctx context.Context, asked request, a *answer) error {
	var except []string
	if asked.ToolChoice != nil { // Anthropic refuses thinking together with a forced tool
		except = append(except, "thinking")
	}
	body, err := m.client.Encode(asked, except...)
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
