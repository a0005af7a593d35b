package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

var (
	errCut = errors.New("cut")
	// errEnd ends an answer without the marks that make it complete.
	errEnd = errors.New("end")
)

// Script returns the reply to a request. The server calls it from one goroutine a request, so it must be safe for concurrent
// use.
type Script func(x *Exchange) Reply

// Sequence answers the n-th request with the n-th reply, and every request after
// the last with status 500.
func Sequence(replies ...Reply) Script {
	return func(x *Exchange) Reply {
		if x.N <= len(replies) {
			return replies[x.N-1]
		}
		return Fail(http.StatusInternalServerError, "api_error", "the script is over")
	}
}

// Always answers every request with the same reply.
func Always(r Reply) Script { return func(*Exchange) Reply { return r } }

// Reply is the answer to one request.
type Reply struct {
	Status int         // 0 stands for 200
	Header http.Header // added to the response's
	Body   string      // sent unchanged, if Steps is empty
	Broken bool        // the connection breaks after Body
	Steps  []Step      // the stream
}

// Stream answers with a stream. Unless a step ends it otherwise, the server completes it by the protocol.
func Stream(steps ...Step) Reply { return Reply{Steps: steps} }

// Fail answers with an error status and a body that fits both vendors.
func Fail(status int, kind, message string) Reply {
	b, err := json.Marshal(map[string]any{"type": "error", "error": map[string]any{"type": kind, "code": kind, "message": message}})
	if err != nil { // unreachable: strings always have a JSON form
		b = nil
	}
	return Reply{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: string(b)}
}

// TooMany answers with status 429 and, unless it is empty, the Retry-After header:
// seconds or an HTTP date.
func TooMany(retryAfter string) Reply {
	r := Fail(http.StatusTooManyRequests, "rate_limit_error", "slow down")
	if retryAfter != "" {
		r.Header.Set("Retry-After", retryAfter)
	}
	return r
}

// Step is one step of a stream. It returns early with ctx's error when the client closes the request or the server stops; so
// must steps that a test writes itself.
type Step func(ctx context.Context, w *Writer) error

// Text streams each piece as a chunk of its own.
func Text(pieces ...string) Step {
	return func(ctx context.Context, w *Writer) error {
		for _, p := range pieces {
			if err := w.Text(ctx, p); err != nil {
				return err
			}
		}
		return nil
	}
}

// Every streams the pieces with a pause before each, for example a token a second.
func Every(interval time.Duration, pieces ...string) Step {
	return func(ctx context.Context, w *Writer) error {
		t := time.NewTicker(interval)
		defer t.Stop()
		for _, p := range pieces {
			select {
			case <-t.C:
			case <-ctx.Done():
				return ctx.Err()
			}
			if err := w.Text(ctx, p); err != nil {
				return err
			}
		}
		return nil
	}
}

// Words splits text after each run of spaces, so that the pieces concatenate to it.
func Words(text string) []string {
	return strings.SplitAfter(text, " ")
}

// Gate waits until the test closes the channel or sends to it.
func Gate(open <-chan struct{}) Step {
	return func(ctx context.Context, _ *Writer) error {
		select {
		case <-open:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Call is a tool call of the scripted model.
type Call struct {
	ID, Name  string // an empty id is omitted, as some servers do
	Arguments string // sent unchanged, valid or not
}

// Calls asks for tools, in parallel for several calls, with the arguments in fragments of at most size runes; 0 sends them
// whole.
func Calls(size int, calls ...Call) Step {
	return func(ctx context.Context, w *Writer) error {
		for _, c := range calls {
			if err := w.Call(ctx, c, size); err != nil {
				return err
			}
		}
		return nil
	}
}

// Usage reports token counts at the end of the stream. Without it OpenAI's
// protocol reports none, and Anthropic's zeros.
func Usage(in, out int64) Step {
	return func(_ context.Context, w *Writer) error {
		w.in, w.out, w.counted = in, out, true
		return nil
	}
}

// Finish replaces the stream's finish reason, in the protocol's words.
func Finish(reason string) Step {
	return func(_ context.Context, w *Writer) error {
		w.reason = &reason
		return nil
	}
}

// Raw writes bytes into the stream unchanged.
func Raw(s string) Step {
	return func(ctx context.Context, w *Writer) error { return w.Raw(ctx, s) }
}

// BadJSON sends an event that is not JSON.
func BadJSON() Step { return Raw("event: content_block_delta\ndata: {\"choices\": [{\"delta\"\n\n") }

// Trouble sends an error event, like a provider that fails in mid-stream.
func Trouble(kind, message string) Step {
	return func(ctx context.Context, w *Writer) error {
		return w.event(ctx, "error", map[string]any{
			"type": "error", "error": map[string]any{"type": kind, "message": message},
		})
	}
}

// Cut breaks the connection in mid-stream.
func Cut() Step {
	return func(context.Context, *Writer) error { return errCut }
}

// End ends the answer regularly, but without the marks of completion.
func End() Step {
	return func(context.Context, *Writer) error { return errEnd }
}

// Hang sends nothing until the client closes the request.
func Hang() Step {
	return func(ctx context.Context, _ *Writer) error {
		<-ctx.Done()
		return ctx.Err()
	}
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
