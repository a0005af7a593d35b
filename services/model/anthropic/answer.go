package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/internal/upstream"
)

// maxBlocks bounds the content blocks of one answer, maxArguments the arguments of all tool calls: both far above any real
// answer.
const (
	maxBlocks    = 512
	maxArguments = 8 << 20
)

// answer holds the received part of one streamed answer.
type answer struct {
	sink   *upstream.Sink
	forced bool // the text consists of the arguments of the one tool call
	model  string
	word   string // the provider's word for the end
	events int
	usage  model.Usage
	blocks []*received
	bytes  int // of arguments and blocks that are kept as they are
	finish upstream.Finish
}

// event adds one event of the stream. It reports whether it was the last.
func (a *answer) event(in upstream.Event) (done bool, err error) {
	a.events++
	if in.Name != "error" && in.Data[0] != '{' && in.Data[0] != '[' {
		return false, nil // a word that keeps the connection alive
	}
	if trouble := upstream.Trouble(in.Name, in.Data, `"content_block`); trouble != nil {
		trouble.Late = a.sink.Said()
		return false, trouble
	}
	var e streamEvent
	if err := json.Unmarshal(in.Data, &e); err != nil {
		return false, upstream.BadReply("event %d: %w", a.events, err)
	}
	if e.Type == "message_stop" {
		return true, a.complete()
	}
	return false, a.apply(&e)
}

// apply adds an event. Pings, block ends and future events change nothing.
func (a *answer) apply(e *streamEvent) error {
	switch e.Type {
	case "message":
		return a.whole(e)
	case "message_start":
		if e.Message != nil {
			a.model = e.Message.Model
			a.count(e.Message.Usage)
		}
	case "message_delta":
		if d := e.delta(); d.StopReason != "" {
			a.word = string(d.StopReason)
		}
		a.count(e.Usage)
	case "content_block_start":
		return a.begin(e.Index, e.ContentBlock)
	case "content_block_delta":
		return a.delta(e.Index, e.delta())
	}
	return nil
}

// whole takes an answer of a server that does not stream.
func (a *answer) whole(e *streamEvent) error {
	a.model, a.word = e.Model, string(e.StopReason)
	a.count(e.Usage)
	for i, raw := range e.Content {
		if err := a.begin(int64(i), raw); err != nil {
			return err
		}
	}
	return nil
}

// count records usage. All figures are totals of the whole message; input counts in three ways.
func (a *answer) count(raw json.RawMessage) {
	var u usage
	if len(raw) == 0 || raw[0] != '{' {
		return
	}
	_ = json.Unmarshal(raw, &u) // a member of another type is skipped, and all others are read
	if !u.OutputTokens.Known {
		return
	}
	out := model.Usage{InputTokens: a.usage.InputTokens, OutputTokens: u.OutputTokens.N, Known: a.usage.Known, TokenDetails: a.usage.TokenDetails}
	if u.InputTokens.Known {
		out.InputTokens = u.InputTokens.N + u.CacheRead.N + u.CacheCreation.N
		out.TokenDetails = event.TokenDetails{CachedTokens: u.CacheRead.N, CacheWriteTokens: u.CacheCreation.N}
		out.Known = true
	}
	a.usage = out
}

func (a *answer) begin(index int64, raw json.RawMessage) error {
	var b contentBlock
	if err := json.Unmarshal(raw, &b); err != nil {
		return upstream.BadReply("block %d: %w", index, err)
	}
	r := &received{index: index, kind: b.Type}
	if len(a.blocks) >= maxBlocks {
		return upstream.BadReply("%d content blocks", len(a.blocks)+1)
	}
	a.blocks = append(a.blocks, r)
	switch b.Type {
	case typeText:
		return a.say(r, b.Text)
	case typeThinking:
		r.thought, r.signature = append(b.Thinking.Text, b.Thinking.Thought...), b.Signature
		return a.sink.Think(r.thought)
	case typeToolUse:
		r.id, r.name, r.start = string(b.ID), string(b.Name), string(b.Input)
		if a.forced { // an empty object stands for later arguments
			return a.sink.Text(strings.TrimPrefix(r.start, "{}"))
		}
		if r.name == "" {
			return upstream.BadReply("tool call %d has no name", index)
		}
	default:
		r.raw = raw
		return a.grow(len(raw))
	}
	return nil
}

func (a *answer) delta(index int64, d delta) error {
	r := a.block(index)
	switch d.Type {
	case "text_delta":
		return a.say(r, d.Text)
	case "thinking_delta":
		thought := append(d.Thinking.Text, d.Thinking.Thought...)
		if r != nil {
			r.thought = append(r.thought, thought...)
		}
		return a.sink.Think(thought)
	case "signature_delta":
		if r != nil {
			r.signature += d.Signature
		}
		return a.grow(len(d.Signature))
	case "input_json_delta":
		if a.forced && (r == nil || r.kind == typeToolUse) {
			return a.sink.Piece(upstream.Piece{Text: d.PartialJSON})
		}
		if r != nil {
			r.pieces = append(r.pieces, d.PartialJSON...)
		}
		return a.grow(len(d.PartialJSON))
	}
	return nil
}

// say passes a piece of a block's text on.
func (a *answer) say(r *received, piece upstream.Piece) error {
	before := len(a.sink.SoFar())
	err := a.sink.Piece(piece)
	if r != nil {
		r.text += len(a.sink.SoFar()) - before
	}
	return err
}

func (a *answer) grow(n int) error {
	if a.bytes += n; a.bytes > maxArguments {
		return upstream.BadReply("%d bytes of arguments and other blocks", a.bytes)
	}
	return nil
}

func (a *answer) block(index int64) *received {
	for i := len(a.blocks) - 1; i >= 0; i-- {
		if a.blocks[i].index == index {
			return a.blocks[i]
		}
	}
	return nil
}

// end judges a stream that ended without message_stop; a stop reason completes it, too.
func (a *answer) end(contentType string) error {
	if err := upstream.Ended(a.word != "", a.events, contentType); err != nil {
		return err
	}
	return a.complete()
}

func (a *answer) complete() (err error) {
	a.finish, err = upstream.End(a.word, len(a.calls()))
	if s, ok := err.(*upstream.StatusError); ok { //nolint:errorlint // as End returns it
		s.Late = a.sink.Said()
	}
	return err
}

// paused reports whether the model continues when it is asked again with what it said.
func (a *answer) paused() bool { return upstream.Paused(a.word) }

func (a *answer) calls() (out []*received) {
	if a.forced {
		return nil
	}
	for _, b := range a.blocks {
		if b.kind == typeToolUse {
			out = append(out, b)
		}
	}
	return out
}

// adopt takes the blocks and the tokens of an answer that this one continues.
func (a *answer) adopt(before *answer) {
	if before == nil {
		return
	}
	a.blocks = append(before.blocks, a.blocks...)
	a.usage.InputTokens += before.usage.InputTokens
	a.usage.OutputTokens += before.usage.OutputTokens
	a.usage.CachedTokens += before.usage.CachedTokens
	a.usage.CacheWriteTokens += before.usage.CacheWriteTokens
	a.usage.Known = a.usage.Known && before.usage.Known
}

func (a *answer) reply(asked, provider string, req model.Request) (model.Reply, error) {
	all := upstream.NewCalls(req)
	calls := a.calls()
	for i, b := range calls {
		last := i == len(calls)-1
		all.Add(b.id, b.name, b.arguments(), last && a.finish.Stop != model.StopToolCalls && (len(b.pieces) == 0 || !upstream.Whole(b.pieces)))
	}
	r := model.Reply{
		ToolCalls: all.All(), StopReason: a.finish.Stop, StopDetail: a.finish.Detail, Usage: a.usage, Model: a.model,
	}
	if !r.Usage.Known {
		r.Usage = model.Usage{}
	}
	if r.Model == "" {
		r.Model = asked
	}
	var err error
	if !a.forced {
		r.PassBack, err = pack(a.blocks, provider)
	}
	return r, err
}

// said returns what the model said before it paused, as it wants it back.
func (a *answer) said() (out []block, err error) {
	texts := a.sink.SoFar()
	for _, r := range a.blocks {
		switch r.kind {
		case typeText:
			n := min(r.text, len(texts))
			if piece := texts[:n]; !upstream.Blank(piece) {
				out = append(out, text(piece))
			}
			texts = texts[n:]
		case typeToolUse:
			out = append(out, block{Type: typeToolUse, ID: r.id, Name: r.name, Input: upstream.History(json.RawMessage(r.arguments()))})
		default:
			raw, err := r.whole()
			if err != nil {
				return nil, err
			}
			out = append(out, block{raw: raw})
		}
	}
	if n := len(out); n > 0 && out[n-1].Type == typeText { // the protocol refuses white space at the end
		out[n-1].Text = strings.TrimRight(out[n-1].Text, " \t\r\n")
	}
	return out, nil
}
