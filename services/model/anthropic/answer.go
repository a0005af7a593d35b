package anthropic

import (
	"encoding/json"
	"strings"

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
	sink     *upstream.Sink
	forced   bool // the text consists of the arguments of the one tool call
	model    string
	stop     string
	events   int
	usage    model.Usage
	calls    []*call
	argBytes int
}

// call is a tool call whose arguments are still arriving.
type call struct {
	index    int64
	id, name string
	start    string // arguments in the start of the block
	pieces   []byte // later arguments; they replace start
}

// event adds one event of the stream. It reports whether it was the last.
func (a *answer) event(data []byte) (done bool, err error) {
	a.events++
	var e streamEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return false, upstream.BadReply("event %d: %w", a.events, err)
	}
	switch e.Type {
	case "error":
		return false, e.Error.Event()
	case "message_stop":
		return true, nil
	}
	return false, a.apply(&e)
}

// apply adds an event. Pings, block ends and future events change nothing.
func (a *answer) apply(e *streamEvent) error {
	switch e.Type {
	case "message_start":
		if e.Message != nil {
			a.model = e.Message.Model
			a.count(e.Message.Usage)
		}
	case "message_delta":
		a.stop = e.Delta.StopReason
		a.count(e.Usage)
	case "content_block_start":
		return a.begin(e)
	case "content_block_delta":
		return a.delta(e)
	}
	return nil
}

// count records usage. All figures are totals of the whole message; input counts in three ways.
func (a *answer) count(u *usage) {
	if u == nil {
		return
	}
	in := a.usage.InputTokens
	if u.InputTokens != nil {
		in = *u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens
	}
	a.usage = model.Usage{InputTokens: in, OutputTokens: u.OutputTokens, Known: true}
}

func (a *answer) begin(e *streamEvent) error {
	switch e.ContentBlock.Type {
	case typeText:
		return a.sink.Text(e.ContentBlock.Text)
	case typeToolUse:
		b := &call{index: e.Index, id: e.ContentBlock.ID, name: e.ContentBlock.Name, start: string(e.ContentBlock.Input)}
		if a.forced { // an empty object stands for later arguments
			return a.sink.Text(strings.TrimPrefix(b.start, "{}"))
		}
		if b.name == "" || len(a.calls) >= maxBlocks {
			return upstream.BadReply("tool call %d has no name or is one too many", e.Index)
		}
		a.calls = append(a.calls, b)
	}
	return nil
}

func (a *answer) delta(e *streamEvent) error {
	switch e.Delta.Type {
	case "text_delta":
		return a.sink.Text(e.Delta.Text)
	case "input_json_delta":
		if a.forced {
			return a.sink.Text(e.Delta.PartialJSON)
		}
		for _, b := range a.calls {
			if b.index == e.Index {
				b.pieces = append(b.pieces, e.Delta.PartialJSON...)
			}
		}
		if a.argBytes += len(e.Delta.PartialJSON); a.argBytes > maxArguments {
			return upstream.BadReply("%d bytes of arguments", a.argBytes)
		}
	}
	return nil
}

// end judges a stream that ended without message_stop; a stop reason completes it, too.
func (a *answer) end(contentType string) error {
	return upstream.Ended(a.stop != "", a.events, contentType)
}

func (a *answer) reply(text, asked string, req model.Request) model.Reply {
	all := upstream.NewCalls(req)
	for _, b := range a.calls {
		arguments := b.start
		if len(b.pieces) > 0 {
			arguments = string(b.pieces)
		}
		all.Add(b.id, b.name, arguments)
	}
	r := model.Reply{Text: text, ToolCalls: all.All(), StopReason: a.reason(), Usage: a.usage, Model: a.model}
	if r.Model == "" {
		r.Model = asked
	}
	return r
}

func (a *answer) reason() string {
	switch a.stop {
	case stopMaxTokens, stopContextWindow:
		return model.StopLength
	case stopRefusal:
		return model.StopFiltered
	}
	if len(a.calls) > 0 {
		return model.StopToolCalls
	}
	return model.StopEnd
}
