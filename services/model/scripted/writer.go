package scripted

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

func newWriter(w http.ResponseWriter, x *Exchange) *Writer {
	return &Writer{http: w, flush: http.NewResponseController(w), x: x}
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

// write sends the reply. The error is errCut or the context's.
func (r Reply) write(ctx context.Context, stop <-chan struct{}, w http.ResponseWriter, x *Exchange) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	for k, v := range r.Header {
		w.Header()[k] = v
	}
	if r.Status == 0 {
		r.Status = http.StatusOK
	}
	if r.Steps == nil && (r.Body != "" || r.Status != http.StatusOK) {
		w.WriteHeader(r.Status)
		if _, err := io.WriteString(w, r.Body); err != nil || !r.Broken {
			return err
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return fmt.Errorf("flush: %w", err)
		}
		return errCut
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(r.Status)
	return stream(ctx, newWriter(w, x), r.Steps)
}

func stream(ctx context.Context, w *Writer, steps []Step) error {
	if err := w.begin(ctx); err != nil {
		return err
	}
	for _, step := range steps {
		switch err := step(ctx, w); {
		case errors.Is(err, errEnd):
			return nil
		case err != nil:
			return fmt.Errorf("answer request: %w", err)
		}
	}
	return w.end(ctx)
}
