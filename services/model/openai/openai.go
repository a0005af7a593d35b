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

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/shared"

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
	name    string
	vendor  bool        // the server is OpenAI's own
	free    atomic.Bool // the server has refused a form for answers
	client  *upstream.Client
	service sdk.ChatCompletionService
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
	c := upstream.New(env.OpenAIKey, env)
	opts := []option.RequestOption{
		option.WithBaseURL(base), option.WithHTTPClient(c.HTTP),
		option.WithMaxRetries(0), option.WithMiddleware(c.Guard),
	}
	if env.OpenAIKey != "" {
		opts = append(opts, option.WithAPIKey(env.OpenAIKey))
	}
	return &Model{
		name: name, vendor: u.Hostname() == "api.openai.com",
		client: c, service: sdk.NewChatCompletionService(opts...),
	}, nil
}

// Name implements model.Model.
func (m *Model) Name() string { return prefix + ":" + m.name }

// Close implements model.Model.
func (m *Model) Close() error { m.client.Close(); return nil }

// Generate implements model.Model.
func (m *Model) Generate(ctx context.Context, req model.Request, onText func(string) error) (model.Reply, error) {
	params, err := m.params(req)
	if err != nil {
		return model.Reply{}, err
	}
	var a *answer
	text, err := m.client.Do(ctx, onText, func(ctx context.Context, s *upstream.Sink) error {
		a = &answer{sink: s}
		err := m.attempt(ctx, params, a)
		if params.ResponseFormat.OfJSONSchema == nil || !refusesForm(err) {
			return err
		}
		a, params.ResponseFormat = &answer{sink: s}, sdk.ChatCompletionNewParamsResponseFormatUnion{}
		if err = m.attempt(ctx, params, a); err == nil {
			m.free.Store(true)
		}
		return err
	})
	if err != nil {
		return model.Reply{}, err
	}
	return a.reply(text, params.Model, req), nil
}

// refusesForm reports whether an error may mean that the server cannot enforce a schema: servers that do not know
// response_format respond with one of these. The model then asks without it: the prompt describes the form, too.
func refusesForm(err error) bool {
	s, ok := errors.AsType[*upstream.StatusError](err)
	return ok && s.Class() == fault.ModelRefused && (s.Status == http.StatusBadRequest || s.Status == http.StatusUnprocessableEntity)
}

// attempt makes one request and reads its stream to the end. It does not use the vendor's typed stream, which cannot tell
// [DONE] from a connection that closed early.
func (m *Model) attempt(ctx context.Context, params sdk.ChatCompletionNewParams, a *answer) error {
	var res *http.Response
	stream := m.service.NewStreaming(ctx, params, option.WithResponseInto(&res))
	defer func() { _ = stream.Close() }() // closes the body; its error tells nothing new
	if err := stream.Err(); err != nil {
		return err
	}
	d := ssestream.NewDecoder(res)
	for d.Next() {
		done, err := a.event(d.Event().Data)
		if err != nil || done {
			return err
		}
	}
	return a.end(d.Err(), res.Header.Get("Content-Type"))
}

func (m *Model) params(req model.Request) (sdk.ChatCompletionNewParams, error) {
	p := sdk.ChatCompletionNewParams{
		Model:         req.Pick(prefix, m.name),
		StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
	}
	if req.System != "" {
		p.Messages = append(p.Messages, sdk.SystemMessage(req.System))
	}
	for _, msg := range req.Messages {
		p.Messages = append(p.Messages, message(msg))
	}
	for _, t := range req.Tools {
		f := shared.FunctionDefinitionParam{Name: t.Name}
		if t.Description != "" {
			f.Description = param.NewOpt(t.Description)
		}
		if err := json.Unmarshal(t.InputSchema, &f.Parameters); err != nil {
			return p, fault.New(fault.Internal).Wrap(fmt.Errorf("input schema of tool %s: %w", t.Name, err))
		}
		p.Tools = append(p.Tools, sdk.ChatCompletionFunctionTool(f))
	}
	if req.Schema != nil && !m.free.Load() {
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
			Name: req.Schema.Name, Strict: param.NewOpt(true), Schema: req.Schema.JSON,
		}}
	}
	switch {
	case req.MaxTokens <= 0:
	case m.vendor: // OpenAI's newer models refuse max_tokens, other servers may not know the new name
		p.MaxCompletionTokens = param.NewOpt(int64(req.MaxTokens))
	default:
		p.MaxTokens = param.NewOpt(int64(req.MaxTokens))
	}
	return p, nil
}

func message(m model.Message) sdk.ChatCompletionMessageParamUnion {
	switch m.Role {
	case model.RoleSystem:
		return sdk.SystemMessage(m.Content)
	case model.RoleTool:
		content := m.Content
		if m.IsError { // the protocol has no flag for it
			content = "Error: " + content
		}
		return sdk.ToolMessage(content, m.ToolCallID)
	case model.RoleAssistant:
		return assistant(m)
	}
	return sdk.UserMessage(m.Content)
}

func assistant(m model.Message) sdk.ChatCompletionMessageParamUnion {
	p := sdk.ChatCompletionAssistantMessageParam{ToolCalls: calls(m.ToolCalls)}
	if m.Content != "" || len(m.ToolCalls) == 0 {
		p.Content.OfString = param.NewOpt(m.Content)
	}
	return sdk.ChatCompletionMessageParamUnion{OfAssistant: &p}
}

func calls(all []event.ToolCall) []sdk.ChatCompletionMessageToolCallUnionParam {
	var out []sdk.ChatCompletionMessageToolCallUnionParam
	for _, c := range all {
		out = append(out, sdk.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
				ID: c.ID,
				Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{
					Name: c.Name, Arguments: string(upstream.History(c.Arguments)),
				},
			},
		})
	}
	return out
}
