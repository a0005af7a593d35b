package openai

import (
	"bytes"
	"encoding/json"

	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/internal/upstream"
)

// maxCalls bounds the tool calls of one answer. OpenAI offers models 128 tools.
const maxCalls = 128

// maxArguments bounds the arguments of one answer's calls: far above any model's
// longest output.
const maxArguments = 8 << 20

// answer holds the received part of one streamed answer.
type answer struct {
	sink     *upstream.Sink
	model    string
	finish   string
	refused  bool
	events   int
	usage    model.Usage
	parts    []*part
	argBytes int
}

// part is a tool call whose arguments are still arriving.
type part struct {
	index     int64
	id, name  string
	arguments []byte
}

// event adds one event of the stream. It reports whether it was the last.
func (a *answer) event(data []byte) (done bool, err error) {
	if bytes.HasPrefix(data, []byte("[DONE]")) {
		return true, a.check()
	}
	a.events++
	var e struct {
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return false, upstream.BadReply("event %d: %w", a.events, err)
	}
	if len(e.Error) > 0 && string(e.Error) != "null" {
		return false, streamError(e.Error)
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return false, upstream.BadReply("event %d: %w", a.events, err)
	}
	return false, a.chunk(c)
}

func streamError(raw json.RawMessage) error {
	var body upstream.ErrorBody
	if json.Unmarshal(raw, &body) != nil {
		body.Message = string(raw)
	}
	return body.Event()
}

func (a *answer) chunk(c chunk) error {
	if c.Model != "" {
		a.model = c.Model
	}
	if c.Usage != nil { // some servers send a running total in every chunk
		a.usage = model.Usage{InputTokens: c.Usage.PromptTokens, OutputTokens: c.Usage.CompletionTokens, Known: true}
	}
	for i := range c.Choices {
		ch := &c.Choices[i]
		if ch.Index != 0 { // the request asked for one choice
			continue
		}
		for _, piece := range []string{ch.Delta.Content, ch.Delta.Refusal} {
			if err := a.sink.Text(piece); err != nil {
				return err
			}
		}
		a.refused = a.refused || ch.Delta.Refusal != ""
		for _, tc := range ch.Delta.ToolCalls {
			if err := a.call(tc); err != nil {
				return err
			}
		}
		if ch.FinishReason != "" {
			a.finish = ch.FinishReason
		}
	}
	return nil
}

// call adds a piece of a tool call.
func (a *answer) call(d toolCallDelta) error {
	p := a.part(d)
	if p == nil {
		p = &part{index: d.Index, id: d.ID}
		a.parts = append(a.parts, p)
	}
	if p.id == "" {
		p.id = d.ID
	}
	if p.name == "" {
		p.name = d.Function.Name
	}
	p.arguments = append(p.arguments, d.Function.Arguments...)
	a.argBytes += len(d.Function.Arguments)
	if len(a.parts) > maxCalls || a.argBytes > maxArguments {
		return upstream.BadReply("%d tool calls with %d bytes of arguments", len(a.parts), a.argBytes)
	}
	return nil
}

// part returns the call that d continues, or nil if d begins a call. If a server gives every call the index 0, part
// distinguishes calls by the id or, if that is missing too, by a name that arrives after complete arguments.
func (a *answer) part(d toolCallDelta) *part {
	for i := len(a.parts) - 1; i >= 0; i-- {
		p := a.parts[i]
		switch {
		case p.index != d.Index:
			continue
		case d.ID != "" && p.id != "" && d.ID != p.id:
			return nil
		case d.ID == "" && d.Function.Name != "" && d.Function.Arguments != "" && json.Valid(p.arguments):
			return nil
		}
		return p
	}
	return nil
}

// end judges a stream that ended without [DONE]; a finish reason completes it, too.
func (a *answer) end(contentType string) error {
	if err := upstream.Ended(a.finish != "", a.events, contentType); err != nil {
		return err
	}
	return a.check()
}

func (a *answer) check() error {
	for _, p := range a.parts {
		if p.name == "" {
			return upstream.BadReply("tool call %d has no name", p.index)
		}
	}
	return nil
}

func (a *answer) reply(text, asked string, req model.Request) model.Reply {
	all := upstream.NewCalls(req)
	for _, p := range a.parts {
		all.Add(p.id, p.name, string(p.arguments))
	}
	r := model.Reply{Text: text, ToolCalls: all.All(), StopReason: a.stop(), Usage: a.usage, Model: a.model}
	if r.Model == "" {
		r.Model = asked
	}
	return r
}

// stop trusts the tool calls more than the finish reason: several servers send "stop" after a call, or no reason at all.
func (a *answer) stop() string {
	switch {
	case a.finish == "length":
		return model.StopLength
	case a.finish == "content_filter":
		return model.StopFiltered
	case len(a.parts) > 0:
		return model.StopToolCalls
	case a.refused:
		return model.StopFiltered
	}
	return model.StopEnd
}
