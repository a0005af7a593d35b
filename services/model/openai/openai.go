// Package openai speaks the chat completions protocol, to OpenAI and to every server that has adopted it: vLLM, llama.cpp,
// Ollama, gateways.
//
// It requires little of those servers. It makes up for missing call ids, usage, finish reasons and call indexes; it never
// accepts a stream that ends without a sign of completion. If a server refuses an answer's schema, the model asks again
// without it, and omits it from then on.
package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
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
	name   string
	url    string
	header http.Header
	vendor bool        // the server is OpenAI's own
	free   atomic.Bool // the server has refused a form for answers
	client *upstream.Client
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
		name: name, url: u.JoinPath("chat/completions").String(), header: http.Header{},
		vendor: u.Hostname() == "api.openai.com", client: upstream.New(env.OpenAIKey, env),
	}
	if env.OpenAIKey != "" {
		m.header.Set("Authorization", "Bearer "+env.OpenAIKey)
	}
	return m, nil
}

// Name implements model.Model.
func (m *Model) Name() string { return prefix + ":" + m.name }

// Close implements model.Model.
func (m *Model) Close() error { m.client.Close(); return nil }

// Generate implements model.Model.
func (m *Model) Generate(ctx context.Context, req model.Request, onText func(string) error) (model.Reply, error) {
	asked, err := m.request(req)
	if err != nil {
		return model.Reply{}, err
	}
	var a *answer
	unseen := 0
	text, err := m.client.Do(ctx, onText, func(ctx context.Context, s *upstream.Sink) error {
		a = &answer{sink: s}
		err := m.attempt(ctx, asked, a)
		if asked.ResponseFormat != nil && refuses(err) {
			a, asked.ResponseFormat = &answer{sink: s}, nil
			if err = m.attempt(ctx, asked, a); err == nil {
				m.free.Store(true)
			}
		}
		blind, images := req.Blind()
		if images == 0 || !refuses(err) {
			return err
		}
		a, asked.Messages = &answer{sink: s}, messagesOf(blind)
		if err = m.attempt(ctx, asked, a); err == nil {
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

// refuses reports whether an error may mean that the server does not take a part of the request: servers that do not know
// response_format respond with one of these, and those of models without eyes to images. The model then asks without it: the
// prompt describes the form, too, and says which images are left out.
func refuses(err error) bool {
	s, ok := errors.AsType[*upstream.StatusError](err)
	return ok && s.Class() == fault.ModelRefused && (s.Status == http.StatusBadRequest || s.Status == http.StatusUnprocessableEntity)
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

func (m *Model) request(req model.Request) (request, error) {
	r := request{Model: req.Pick(prefix, m.name), Stream: true, StreamOptions: streamOptions{IncludeUsage: true}}
	r.Messages = messagesOf(req)
	for _, t := range req.Tools {
		if !json.Valid(t.InputSchema) {
			return r, fault.New(fault.Internal).Wrap(fmt.Errorf("input schema of tool %s is not valid JSON", t.Name))
		}
		r.Tools = append(r.Tools, tool{Type: "function", Function: function{Name: t.Name, Description: t.Description, Parameters: t.InputSchema}})
	}
	if req.Schema != nil && !m.free.Load() {
		r.ResponseFormat = &responseFormat{
			Type: "json_schema", JSONSchema: jsonSchema{Name: req.Schema.Name, Strict: true, Schema: req.Schema.JSON},
		}
	}
	switch {
	case req.MaxTokens <= 0:
	case m.vendor: // OpenAI's newer models refuse max_tokens, other servers may not know the new name
		r.MaxCompletionTokens = req.MaxTokens
	default:
		r.MaxTokens = req.MaxTokens
	}
	return r, nil
}

func messagesOf(req model.Request) (out []message) {
	if req.System != "" {
		out = append(out, message{Role: "system", Content: &req.System})
	}
	var returned []contentPart // images of tools: a message of a user has to show them, behind all results
	for _, m := range req.Messages {
		if m.Role != model.RoleTool && len(returned) > 0 {
			out, returned = append(out, message{Role: "user", Content: returned}), nil
		}
		out = append(out, messageOf(m))
		if m.Role == model.RoleTool && len(m.Images) > 0 {
			returned = append(returned, parts("Images of the result of the call "+m.ToolCallID+":", m.Images)...)
		}
	}
	if len(returned) > 0 {
		out = append(out, message{Role: "user", Content: returned})
	}
	return out
}

// parts are a text and images as the content of a message.
func parts(text string, images []model.Image) (out []contentPart) {
	if text != "" {
		out = append(out, contentPart{Type: "text", Text: text})
	}
	for _, i := range images {
		out = append(out, contentPart{Type: "image_url", ImageURL: &imageURL{URL: "data:" + i.MediaType + ";base64," + i.Data}})
	}
	return out
}

func messageOf(m model.Message) message {
	content := m.Content
	switch m.Role {
	case model.RoleSystem:
		return message{Role: "system", Content: &content}
	case model.RoleTool:
		if m.IsError { // the protocol has no flag for it
			content = "Error: " + content
		}
		return message{Role: "tool", Content: &content, ToolCallID: m.ToolCallID}
	case model.RoleAssistant:
		r := message{Role: "assistant", ToolCalls: calls(m.ToolCalls)}
		if m.Content != "" || len(m.ToolCalls) == 0 {
			r.Content = &content
		}
		return r
	}
	if len(m.Images) > 0 {
		return message{Role: "user", Content: parts(content, m.Images)}
	}
	return message{Role: "user", Content: &content}
}

func calls(all []event.ToolCall) []toolCall {
	var out []toolCall
	for _, c := range all {
		out = append(out, toolCall{
			ID: c.ID, Type: "function", Function: functionCall{Name: c.Name, Arguments: string(upstream.History(c.Arguments))},
		})
	}
	return out
}
