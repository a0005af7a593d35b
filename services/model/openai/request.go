package openai

import (
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/internal/upstream"
)

// Names of the options of a request.
const (
	optUsage     = "stream_options"
	optForm      = "response_format"
	optSystem    = "the system role"
	optPassBack  = "reasoning of earlier messages"
	optBare      = "calls without reasoning" // omitted: each message with calls has reasoning
	optOldLimit  = "max_tokens"              // omitted: max_completion_tokens takes its place
	optTools     = "tools"
	optImages    = "images"
	optAnyID     = "ids of calls in any form" // omitted: nine letters and digits, as Mistral wants them
	optAfterTool = "a user after a tool"      // omitted: an assistant's message comes between
)

// unknownMember are the words of servers that refuse a member of a request, and perhaps do not name it.
var unknownMember = []string{
	"unknown field", "unknown parameter", "unknown argument", "unknown name", "unrecognized", "unrecognised", "unexpected", "unsupported parameter",
	"extra inputs", "extra_forbidden", "extra fields", "additional propert", "not permitted", "bad request", "invalid request body",
}

// server is what requests depend on.
type server struct {
	provider string // for what the server wants back
	vendor   bool   // it takes max_completion_tokens, and no max_tokens with its newer models
}

// options are the parts that a request could do without, in the order in which they are tried after a refusal that names
// none of them.
func (s server) options(req model.Request, refusal string) []upstream.Option {
	all := []upstream.Option{{Name: optUsage, Named: true, Words: append([]string{"stream_options", "include_usage", "stream options"}, unknownMember...)}}
	if req.Schema != nil {
		all = append(all, upstream.Option{Name: optForm, Words: []string{"response_format", "json_schema", "response format", "structured"}})
	}
	if hasSystem(req) {
		all = append(all, upstream.Option{Name: optSystem, Named: true, Words: []string{"system", "role", "template", "developer instruction"}})
	}
	if hasCalls(req) {
		words := []string{"reasoning", "thought_signature", "thinking", "extra_content"}
		all = append(all,
			upstream.Option{Name: optAnyID, Words: []string{"tool call id", "tool_call_id", "tool_calls[0].id"}, Named: true},
			upstream.Option{Name: optAfterTool, Words: []string{"after role 'tool'", "after role tool", "role 'user' after", "after tool"}, Named: true},
		)
		all = append(all, upstream.Option{Name: optBare, Words: words, Named: true}, upstream.Option{Name: optPassBack, Words: append(words, "extra"), Named: true})
	}
	if req.MaxTokens > 0 && !s.vendor {
		all = append(all, upstream.Option{Name: optOldLimit, Words: []string{"max_tokens", "max_completion_tokens"}, Named: true})
	}
	all = append(all, upstream.ToolOptions(req, refusal)...)
	if len(req.Tools) > 0 {
		all = append(all, upstream.Option{Name: optTools, Named: true, Words: []string{
			"support tool", "support function", "tools is not supported", "tools are not supported", "tool use is not", "tool-call-parser", "tool calling is not", "tool choice",
		}})
	}
	if _, images := req.Blind(); images > 0 {
		all = append(all, upstream.Option{Name: optImages, Words: []string{"image", "multimodal", "vision", "content part", "valid string"}, Once: true})
	}
	return all
}

func hasSystem(req model.Request) bool {
	return req.System != "" || slices.ContainsFunc(req.Messages, func(m model.Message) bool { return m.Role == model.RoleSystem })
}

func hasCalls(req model.Request) bool {
	return slices.ContainsFunc(req.Messages, func(m model.Message) bool { return len(m.ToolCalls) > 0 })
}

// request returns the request without some options.
func (s server) request(name string, req model.Request, without upstream.Without) request {
	r := request{Model: name, Stream: true}
	if !without[optUsage] {
		r.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	if without[optImages] {
		req, _ = req.Blind()
	}
	r.Messages = s.messages(req, without)
	for _, t := range req.Tools {
		if !without[optTools] && !without[upstream.ToolOption(t)] {
			r.Tools = append(r.Tools, tool{Type: "function", Function: function{Name: t.Name, Description: t.Description, Parameters: t.InputSchema}})
		}
	}
	if req.Schema != nil && !without[optForm] {
		r.ResponseFormat = &responseFormat{
			Type: "json_schema", JSONSchema: jsonSchema{Name: req.Schema.Name, Strict: true, Schema: req.Schema.JSON},
		}
	}
	switch {
	case req.MaxTokens <= 0:
	case s.vendor, without[optOldLimit]: // OpenAI's newer models refuse max_tokens, other servers may not know the new name
		r.MaxCompletionTokens = req.MaxTokens
	default:
		r.MaxTokens = req.MaxTokens
	}
	return r
}

// messages returns the conversation. Many servers want users and assistants to take turns, and refuse blank messages of an
// assistant: neighbours of one role are joined, and blank texts left out.
func (s server) messages(req model.Request, without upstream.Without) []message {
	var t turns
	if req.System != "" {
		t.add(message{Role: "system", Content: &req.System})
	}
	var returned []contentPart // images of tools: a message of a user has to show them, after all results
	for _, msg := range req.Messages {
		if msg.Role != model.RoleTool && len(returned) > 0 {
			t.add(message{Role: "user", Content: returned})
			returned = nil
		}
		out := messageOf(msg)
		if !without[optPassBack] {
			give(&out, msg, s.provider)
		}
		if without[optBare] && len(out.ToolCalls) > 0 && out.ReasoningContent == "" {
			out.ReasoningContent = orBlank(msg.Reasoning)
		}
		t.add(out)
		if msg.Role == model.RoleTool && len(msg.Images) > 0 {
			returned = append(returned, contentParts("Images of the result of the call "+msg.ToolCallID+":", msg.Images)...)
		}
	}
	if len(returned) > 0 {
		t.add(message{Role: "user", Content: returned})
	}
	all := t.all
	if without[optAfterTool] {
		all = answered(all)
	}
	for i := range all {
		all[i].callIDs(without[optAnyID])
	}
	if without[optSystem] {
		return systemToUser(all)
	}
	return all
}

// answered puts an assistant's message between results of tools and the next message of a user.
func answered(all []message) (out []message) {
	stopped := "(interrupted)"
	for i, m := range all {
		if i > 0 && m.Role == "user" && all[i-1].Role == "tool" {
			out = append(out, message{Role: "assistant", Content: &stopped})
		}
		out = append(out, m)
	}
	return out
}

// callIDs gives calls ids that the server takes, the same each time. OpenAI wants at most 40 characters.
func (m *message) callIDs(short bool) {
	id := upstream.LongID
	if short {
		id = upstream.ShortID
	}
	if m.ToolCallID != "" {
		m.ToolCallID = id(m.ToolCallID)
	}
	for i := range m.ToolCalls {
		m.ToolCalls[i].ID = id(m.ToolCalls[i].ID)
	}
}

// orBlank stands for the reasoning of a message that has none, where a server wants some.
func orBlank(reasoning string) string {
	if reasoning == "" {
		return " "
	}
	return reasoning
}

// turns joins neighbours of one role.
type turns struct{ all []message }

func (t *turns) add(m message) {
	n := len(t.all)
	switch {
	case m.Role == "assistant" && m.Content == nil && len(m.ToolCalls) == 0:
		return
	case n == 0 || t.all[n-1].Role != m.Role || m.Role == "tool" || m.Role == "system":
	case m.Role == "user":
		t.all[n-1].Content = joinContent(t.all[n-1].Content, m.Content)
		return
	case len(t.all[n-1].ToolCalls) == 0: // an assistant's text before another message of it
		before := t.all[n-1].Content
		t.all[n-1] = m
		t.all[n-1].Content = joinContent(before, m.Content)
		return
	}
	t.all = append(t.all, m)
}

// joinContent joins two contents of messages.
func joinContent(a, b any) any {
	x, oneText := a.(*string)
	y, otherText := b.(*string)
	switch {
	case b == nil:
		return a
	case a == nil:
		return b
	case oneText && otherText:
		joined := *x + "\n\n" + *y
		return &joined
	}
	return append(partsOf(a), partsOf(b)...)
}

func partsOf(content any) []contentPart {
	if text, ok := content.(*string); ok {
		return []contentPart{{Type: "text", Text: *text}}
	}
	list, _ := content.([]contentPart)
	return slices.Clone(list)
}

// systemToUser puts the instructions before the first message of the user, for models whose template has no system role.
func systemToUser(all []message) []message {
	var instructions []string
	var t turns
	for _, m := range all {
		if text, ok := m.Content.(*string); ok && m.Role == "system" {
			instructions = append(instructions, *text)
		}
	}
	text := strings.Join(instructions, "\n\n")
	if text != "" {
		t.add(message{Role: "user", Content: &text})
	}
	for _, m := range all {
		if m.Role != "system" {
			t.add(m)
		}
	}
	return t.all
}

// contentParts are a text and images as the content of a message.
func contentParts(text string, images []model.Image) (out []contentPart) {
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
		content = upstream.OrNothing(content)
		return message{Role: "tool", Content: &content, ToolCallID: m.ToolCallID}
	case model.RoleAssistant:
		r := message{Role: "assistant", ToolCalls: calls(m.ToolCalls)}
		if strings.TrimSpace(m.Content) != "" {
			r.Content = &content
		}
		return r
	}
	if len(m.Images) > 0 {
		return message{Role: "user", Content: contentParts(content, m.Images)}
	}
	content = upstream.OrEmpty(content)
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
