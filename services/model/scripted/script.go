package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/prompt"
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

// Text streams each piece as a separate chunk.
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

// The protocols that a Server speaks.
const (
	OpenAI    = "openai"
	Anthropic = "anthropic"
)

// Exchange is one request and its outcome.
type Exchange struct {
	N        int    // 1 for the first request of the server
	Protocol string // OpenAI or Anthropic
	Header   http.Header
	Body     []byte // as it arrived
	Model    string
	Prompt   model.Request // the decoded body; NewID and Now are not set
	Arrived  time.Time

	Stage string      // event.Stage*: the stage of the request; empty in a chat
	Task  string      // solving: the step's id
	Data  prompt.Data // the stage's data

	gone, done chan struct{}
	ended      time.Time
}

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
