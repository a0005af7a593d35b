package anthropic

import (
	"encoding/json"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

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
	stop     sdk.StopReason
	events   int
	usage    model.Usage
	blocks   []*block
	argBytes int
}

// block is a tool call whose arguments are still arriving.
type block struct {
	index    int64
	id, name string
	start    string // arguments in the start of the block
	pieces   []byte // later arguments; they replace start
}

// event adds one event of the stream. It reports whether it was the last.
func (a *answer) event(data []byte) (done bool, err error) {
	a.events++
	var head struct {
		Type  string             `json:"type"`
		Error upstream.ErrorBody `json:"error"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return false, upstream.BadReply("event %d: %w", a.events, err)
	}
	switch head.Type {
	case "error":
		return false, head.Error.Event()
	case "message_stop":
		return true, nil
	case "message_start", "message_delta", "content_block_start", "content_block_delta":
	default: // pings, block ends and future events
		return false, nil
	}
	var e sdk.MessageStreamEventUnion
	if err := json.Unmarshal(data, &e); err != nil {
		return false, upstream.BadReply("event %d: %w", a.events, err)
	}
	return false, a.apply(&e)
}

func (a *answer) apply(e *sdk.MessageStreamEventUnion) error {
	switch e.Type {
	case "message_start":
		a.model = e.Message.Model
		u := e.Message.Usage
		a.count(input(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens), u.OutputTokens, e.Message.JSON.Usage.Valid())
	case "message_delta":
		a.stop = e.Delta.StopReason
		u := e.Usage
		in := a.usage.InputTokens
		if u.JSON.InputTokens.Valid() {
			in = input(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens)
		}
		a.count(in, u.OutputTokens, e.JSON.Usage.Valid())
	case "content_block_start":
		return a.begin(e)
	case "content_block_delta":
		return a.delta(e)
	}
	return nil
}

// input adds up the three ways in which the protocol counts input.
func input(fresh, cacheRead, cacheWritten int64) int64 { return fresh + cacheRead + cacheWritten }

// count records usage. All figures are totals of the whole message.
func (a *answer) count(in, out int64, known bool) {
	if known {
		a.usage = model.Usage{InputTokens: in, OutputTokens: out, Known: true}
	}
}

func (a *answer) begin(e *sdk.MessageStreamEventUnion) error {
	switch e.ContentBlock.Type {
	case "text":
		return a.sink.Text(e.ContentBlock.Text)
	case "tool_use":
		b := &block{index: e.Index, id: e.ContentBlock.ID, name: e.ContentBlock.Name}
		var start struct { // raw, so that numbers keep all their digits
			Input json.RawMessage `json:"input"`
		}
		if err := json.Unmarshal([]byte(e.ContentBlock.RawJSON()), &start); err != nil {
			return upstream.BadReply("input of block %d: %w", e.Index, err)
		}
		b.start = string(start.Input)
		if a.forced { // an empty object stands for later arguments
			return a.sink.Text(strings.TrimPrefix(b.start, "{}"))
		}
		if b.name == "" || len(a.blocks) >= maxBlocks {
			return upstream.BadReply("tool call %d has no name or is one too many", e.Index)
		}
		a.blocks = append(a.blocks, b)
	}
	return nil
}

func (a *answer) delta(e *sdk.MessageStreamEventUnion) error {
	switch e.Delta.Type {
	case "text_delta":
		return a.sink.Text(e.Delta.Text)
	case "input_json_delta":
		if a.forced {
			return a.sink.Text(e.Delta.PartialJSON)
		}
		for _, b := range a.blocks {
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
func (a *answer) end(err error, contentType string) error {
	return upstream.Ended(err, a.stop != "", a.events, contentType)
}

func (a *answer) reply(text, asked string, req model.Request) model.Reply {
	all := upstream.NewCalls(req)
	for _, b := range a.blocks {
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
	case sdk.StopReasonMaxTokens, sdk.StopReasonModelContextWindowExceeded:
		return model.StopLength
	case sdk.StopReasonRefusal:
		return model.StopFiltered
	}
	if len(a.blocks) > 0 {
		return model.StopToolCalls
	}
	return model.StopEnd
}
