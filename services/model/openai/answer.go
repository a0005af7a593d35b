package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/internal/upstream"
)

// answer holds the received part of one streamed answer.
type answer struct {
	sink    *upstream.Sink
	model   string
	word    string // the provider's word for the end
	refused bool
	events  int
	usage   model.Usage
	calls   parts
	back    passBack
	finish  upstream.Finish
}

// event adds one event of the stream. It reports whether it was the last.
func (a *answer) event(e upstream.Event) (done bool, err error) {
	if bytes.HasPrefix(e.Data, []byte("[DONE]")) {
		return true, a.complete()
	}
	a.events++
	switch {
	case e.Name == "error" || e.Data[0] == '{':
	case e.Data[0] == '[':
		return a.list(e)
	default:
		return false, nil // a word that keeps the connection alive
	}
	if trouble := upstream.Trouble(e.Name, e.Data, `"choices"`); trouble != nil {
		return false, a.fail(trouble)
	}
	var c chunk
	if err := json.Unmarshal(e.Data, &c); err != nil {
		return false, upstream.BadReply("event %d: %w", a.events, err)
	}
	return false, a.chunk(c)
}

// list adds the events that an event holds.
func (a *answer) list(e upstream.Event) (done bool, err error) {
	var all []json.RawMessage
	if err := json.Unmarshal(e.Data, &all); err != nil {
		return false, upstream.BadReply("event %d: %w", a.events, err)
	}
	for _, raw := range all {
		if raw[0] != '{' {
			return false, upstream.BadReply("event %d is a list of other things than objects", a.events)
		}
		if done, err := a.event(upstream.Event{Data: raw}); err != nil || done {
			return done, err
		}
	}
	return false, nil
}

// fail returns the provider's error, which ends the answer.
func (a *answer) fail(trouble *upstream.StatusError) error {
	trouble.Late = a.sink.Said()
	return trouble
}

func (a *answer) chunk(c chunk) error {
	if c.Model != "" {
		a.model = string(c.Model)
	}
	a.count(c.Usage)
	a.count(c.Groq.Usage)
	for i := range c.Choices {
		ch := &c.Choices[i]
		if ch.Index.N != 0 { // the request asked for one choice
			continue
		}
		a.count(ch.Usage)
		if err := a.delta(&ch.Delta, false); err != nil {
			return err
		}
		if ch.Message != nil {
			if err := a.delta(ch.Message, true); err != nil {
				return err
			}
		}
		if ch.FinishReason != "" {
			a.word = string(ch.FinishReason)
		}
		if len(ch.Error) == 0 {
			continue
		}
		if trouble := upstream.Trouble("", choiceError(ch.Error), `"choices"`); trouble != nil {
			return a.fail(trouble)
		}
	}
	return nil
}

// choiceError returns an error inside a choice as an event has it.
func choiceError(raw json.RawMessage) []byte {
	if len(raw) == 0 || string(raw) == "null" {
		return []byte("{}")
	}
	return fmt.Appendf(nil, `{"error":%s}`, raw)
}

// count records usage. Some servers send a running total in every chunk.
func (a *answer) count(raw json.RawMessage) {
	if u, ok := usageOf(raw); ok {
		a.usage = u
	}
}

// delta adds a piece of the answer, or all of it.
func (a *answer) delta(d *delta, whole bool) error {
	if err := a.reasoning(d); err != nil {
		return err
	}
	for _, piece := range []upstream.Piece{d.Content, d.Refusal} {
		if err := a.sink.Piece(piece); err != nil {
			return err
		}
	}
	a.refused = a.refused || !d.Refusal.Empty()
	a.back.message(d.ExtraContent)
	for i, tc := range d.ToolCalls {
		if whole && !tc.Index.Known {
			tc.Index.N = int64(i)
		}
		if err := a.calls.add(tc); err != nil {
			return err
		}
	}
	if f := d.Function; f != nil {
		return a.calls.add(toolCallDelta{Function: *f})
	}
	return nil
}

// reasoning adds a piece of the reasoning. Some servers send it under two names at once.
func (a *answer) reasoning(d *delta) error {
	a.back.details(d.ReasoningDetails)
	for _, m := range []struct {
		name  string
		piece upstream.Piece
	}{{memberReasoningContent, d.ReasoningContent}, {memberReasoning, d.Reasoning}} {
		if m.piece.Empty() || a.back.Member != "" && a.back.Member != m.name {
			continue
		}
		a.back.Member = m.name
		return a.sink.Think(append(m.piece.Thought, m.piece.Text...))
	}
	return nil
}

// end judges a stream that ended without [DONE]; a finish reason completes it, too.
func (a *answer) end(contentType string) error {
	if err := upstream.Ended(a.word != "", a.events, contentType); err != nil {
		return err
	}
	return a.complete()
}

// complete judges a stream that its server calls complete.
func (a *answer) complete() (err error) {
	if err := a.calls.end(); err != nil {
		return err
	}
	if a.word == "" && a.calls.open() {
		return fmt.Errorf("the stream ended within a tool call, without a finish reason: %w", io.ErrUnexpectedEOF)
	}
	a.finish, err = upstream.End(a.word, len(a.calls.all))
	if s, ok := err.(*upstream.StatusError); ok { //nolint:errorlint // as End returns it
		return a.fail(s)
	}
	if a.refused && a.finish.Stop == model.StopEnd {
		a.finish.Stop = model.StopRefused
	}
	return err
}

func (a *answer) reply(asked, provider string, req model.Request) (model.Reply, error) {
	all := upstream.NewCalls(req)
	cut := a.finish.Stop != model.StopToolCalls && a.calls.open()
	for i, p := range a.calls.all {
		all.Add(p.id, p.name, string(p.arguments), cut && i == len(a.calls.all)-1)
		a.back.call(i, p.extra)
	}
	r := model.Reply{
		ToolCalls: all.All(), StopReason: a.finish.Stop, StopDetail: a.finish.Detail, Usage: a.usage, Model: a.model,
	}
	if r.Model == "" {
		r.Model = asked
	}
	var err error
	r.PassBack, err = a.back.pack(provider, len(r.ToolCalls) > 0)
	return r, err
}
