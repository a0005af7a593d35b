// Package anthropic speaks the messages protocol of Anthropic. To enforce the form of an answer it forces a tool call, whose
// arguments are the answer.
package anthropic

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/internal/upstream"
)

var errNoKey = errors.New("ANTHROPIC_API_KEY is not set")

// Model is one model of one server.
type Model struct {
	name    string
	client  *upstream.Client
	service sdk.MessageService
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
	if u, err := url.Parse(base); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("ANTHROPIC_BASE_URL is not an http or https address")
	}
	c := upstream.New(env.AnthropicKey, env)
	return &Model{name: name, client: c, service: sdk.NewMessageService(
		option.WithBaseURL(base), option.WithHTTPClient(c.HTTP), option.WithAPIKey(env.AnthropicKey),
		option.WithMaxRetries(0), option.WithMiddleware(c.Guard),
		option.WithoutOpenTelemetry(), // model.Open traces every provider alike
	)}, nil
}

// Name implements model.Model.
func (m *Model) Name() string { return prefix + ":" + m.name }

// Close implements model.Model.
func (m *Model) Close() error { m.client.Close(); return nil }

// Generate implements model.Model.
func (m *Model) Generate(ctx context.Context, req model.Request, onText func(string) error) (model.Reply, error) {
	params, err := params(req.Pick(prefix, m.name), req)
	if err != nil {
		return model.Reply{}, err
	}
	var a *answer
	text, err := m.client.Do(ctx, onText, func(ctx context.Context, s *upstream.Sink) error {
		a = &answer{sink: s, forced: forced(req)}
		return m.attempt(ctx, params, a)
	})
	if err != nil {
		return model.Reply{}, err
	}
	return a.reply(text, params.Model, req), nil
}

// attempt makes one request and reads its stream to the end. It does not use the vendor's typed stream, which does not
// notice an early end.
func (m *Model) attempt(ctx context.Context, params sdk.MessageNewParams, a *answer) error {
	var res *http.Response
	stream := m.service.NewStreaming(ctx, params, option.WithResponseInto(&res))
	if err := stream.Err(); err != nil {
		return err
	}
	defer func() { _ = stream.Close() }() // closes the body; its error tells nothing new
	d := ssestream.NewDecoder(res)
	for d.Next() {
		done, err := a.event(d.Event().Data)
		if err != nil || done {
			return err
		}
	}
	return a.end(d.Err(), res.Header.Get("Content-Type"))
}
