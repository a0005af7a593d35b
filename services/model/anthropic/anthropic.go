// Package anthropic speaks the messages protocol of Anthropic. To enforce the form of an answer it forces a tool call, whose
// arguments are the answer.
package anthropic

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/internal/upstream"
)

var errNoKey = errors.New("ANTHROPIC_API_KEY is not set")

// Model is one model of one server.
type Model struct {
	name   string
	url    string
	header http.Header
	client *upstream.Client
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
	if env.AnthropicKey == "" {
		return nil, errNoKey
	}
	base := env.AnthropicBaseURL
	if base == "" {
		base = baseURL
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("ANTHROPIC_BASE_URL is not an http or https address")
	}
	return &Model{
		name: name, url: u.JoinPath("v1/messages").String(),
		header: http.Header{"X-Api-Key": {env.AnthropicKey}, "Anthropic-Version": {version}},
		client: upstream.New(env.AnthropicKey, env),
	}, nil
}

// Name implements model.Model.
func (m *Model) Name() string { return prefix + ":" + m.name }

// Close implements model.Model.
func (m *Model) Close() error { m.client.Close(); return nil }

// Generate implements model.Model.
func (m *Model) Generate(ctx context.Context, req model.Request, onText func(string) error) (model.Reply, error) {
	asked, err := requestOf(req.Pick(prefix, m.name), req)
	if err != nil {
		return model.Reply{}, err
	}
	var a *answer
	unseen := 0
	text, err := m.client.Do(ctx, onText, func(ctx context.Context, s *upstream.Sink) error {
		a = &answer{sink: s, forced: forced(req)}
		err := m.attempt(ctx, asked, a)
		blind, images := req.Blind()
		if images == 0 || !refuses(err) {
			return err
		}
		without, err := requestOf(asked.Model, blind)
		if err != nil {
			return err
		}
		a = &answer{sink: s, forced: forced(req)}
		if err = m.attempt(ctx, without, a); err == nil {
			unseen = images
		}
		return err
	})
	if err != nil {
		return model.Reply{}, err
	}
	reply := a.reply(text, asked.Model, req)
	reply.Unseen = unseen
	return reply, nil
}

// refuses reports whether an error may mean that the model does not take an image. It is then asked again without, and told so.
func refuses(err error) bool {
	s, ok := errors.AsType[*upstream.StatusError](err)
	return ok && s.Class() == fault.ModelRefused && s.Status == http.StatusBadRequest
}

// attempt makes one request and reads its stream to the end.
func (m *Model) attempt(ctx context.Context, asked request, a *answer) error {
	over := false
	contentType, err := m.client.Stream(ctx, m.url, m.header, asked, func(data []byte) (done bool, err error) {
		over, err = a.event(data)
		return over, err
	})
	if err != nil || over {
		return err
	}
	return a.end(contentType)
}
