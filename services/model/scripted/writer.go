package scripted

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// Writer streams one answer in the protocol of its request. One goroutine uses it.
type Writer struct {
	http     http.ResponseWriter
	flush    *http.ResponseController
	x        *Exchange
	calls    int
	in, out  int64
	counted  bool
	reason   *string
	block    int  // Anthropic: index of the next content block
	textOpen bool // Anthropic: the previous block is text and still open
	forced   bool // Anthropic: the text goes into arguments
}

type object = map[string]any

func newWriter(w http.ResponseWriter, x *Exchange) *Writer {
	return &Writer{http: w, flush: http.NewResponseController(w), x: x}
}

// Raw writes s unchanged and flushes it. It fails once ctx has ended.
func (w *Writer) Raw(ctx context.Context, s string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := w.http.Write([]byte(s)); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := w.flush.Flush(); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}

// Text streams one piece of text.
func (w *Writer) Text(ctx context.Context, s string) error {
	if w.x.Protocol == OpenAI {
		return w.chunk(ctx, object{"content": s}, nil)
	}
	block, delta := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": s}
	if f := w.x.Prompt.Schema; f != nil { // the text is the arguments of the forced tool call
		w.forced = true
		block = object{"type": "tool_use", "id": "toolu_" + w.id(), "name": f.Name, "input": object{}}
		delta = object{"type": "input_json_delta", "partial_json": s}
	}
	if !w.textOpen {
		if err := w.open(ctx, block); err != nil {
			return err
		}
		w.textOpen = true
	}
	return w.delta(ctx, delta)
}

// Call streams one tool call, its arguments in fragments of at most size runes.
func (w *Writer) Call(ctx context.Context, c Call, size int) error {
	if err := w.callStart(ctx, c); err != nil {
		return err
	}
	for rest := []rune(c.Arguments); len(rest) > 0; {
		n := len(rest)
		if size > 0 {
			n = min(size, n)
		}
		if err := w.callArguments(ctx, string(rest[:n])); err != nil {
			return err
		}
		rest = rest[n:]
	}
	w.calls++
	if w.x.Protocol == Anthropic {
		return w.close(ctx)
	}
	return nil
}

func (w *Writer) callStart(ctx context.Context, c Call) error {
	if w.x.Protocol == OpenAI {
		call := object{"index": w.calls, "type": "function", "function": object{"name": c.Name, "arguments": ""}}
		if c.ID != "" {
			call["id"] = c.ID
		}
		return w.chunk(ctx, object{"tool_calls": []object{call}}, nil)
	}
	if err := w.closeText(ctx); err != nil {
		return err
	}
	return w.open(ctx, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}})
}

func (w *Writer) callArguments(ctx context.Context, s string) error {
	if w.x.Protocol == OpenAI {
		call := object{"index": w.calls, "function": object{"arguments": s}}
		return w.chunk(ctx, object{"tool_calls": []object{call}}, nil)
	}
	return w.delta(ctx, object{"type": "input_json_delta", "partial_json": s})
}

// begin opens the stream.
func (w *Writer) begin(ctx context.Context) error {
	if w.x.Protocol == OpenAI {
		return w.chunk(ctx, object{"role": "assistant", "content": ""}, nil)
	}
	return w.event(ctx, "message_start", object{"type": "message_start", "message": object{
		"id": w.id(), "type": "message", "role": "assistant", "model": w.x.Model, "content": []object{},
		"stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": 0, "output_tokens": 0},
	}})
}

// end completes the stream.
func (w *Writer) end(ctx context.Context) error {
	if w.x.Protocol == Anthropic {
		return w.endAnthropic(ctx)
	}
	if reason := w.finish("stop", "tool_calls"); reason != "" {
		if err := w.chunk(ctx, object{}, &reason); err != nil {
			return err
		}
	}
	if w.counted {
		usage := w.head()
		usage["choices"] = []object{}
		usage["usage"] = object{"prompt_tokens": w.in, "completion_tokens": w.out, "total_tokens": w.in + w.out}
		if err := w.event(ctx, "", usage); err != nil {
			return err
		}
	}
	return w.Raw(ctx, "data: [DONE]\n\n")
}

func (w *Writer) endAnthropic(ctx context.Context) error {
	if err := w.closeText(ctx); err != nil {
		return err
	}
	if err := w.event(ctx, "message_delta", object{
		"type":  "message_delta",
		"delta": object{"stop_reason": w.finish("end_turn", "tool_use"), "stop_sequence": nil},
		"usage": object{"input_tokens": w.in, "output_tokens": w.out},
	}); err != nil {
		return err
	}
	return w.event(ctx, "message_stop", object{"type": "message_stop"})
}

func (w *Writer) finish(plain, calls string) string {
	switch {
	case w.reason != nil:
		return *w.reason
	case w.calls > 0, w.forced:
		return calls
	}
	return plain
}

func (w *Writer) id() string { return fmt.Sprintf("scripted_%d", w.x.N) }

// head returns the members that every chunk of an OpenAI stream has.
func (w *Writer) head() object {
	return object{"id": w.id(), "object": "chat.completion.chunk", "created": 1, "model": w.x.Model}
}

func (w *Writer) chunk(ctx context.Context, delta object, finish *string) error {
	c := w.head()
	c["choices"] = []object{{"index": 0, "delta": delta, "finish_reason": finish}}
	return w.event(ctx, "", c)
}

func (w *Writer) open(ctx context.Context, block object) error {
	return w.event(ctx, "content_block_start", object{"type": "content_block_start", "index": w.block, "content_block": block})
}

func (w *Writer) delta(ctx context.Context, delta object) error {
	return w.event(ctx, "content_block_delta", object{"type": "content_block_delta", "index": w.block, "delta": delta})
}

func (w *Writer) close(ctx context.Context) error {
	err := w.event(ctx, "content_block_stop", object{"type": "content_block_stop", "index": w.block})
	w.block++
	return err
}

func (w *Writer) closeText(ctx context.Context) error {
	if !w.textOpen {
		return nil
	}
	w.textOpen = false
	return w.close(ctx)
}

func (w *Writer) event(ctx context.Context, name string, v object) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	s := "data: " + string(b) + "\n\n"
	if name != "" && w.x.Protocol == Anthropic {
		s = "event: " + name + "\n" + s
	}
	return w.Raw(ctx, s)
}
