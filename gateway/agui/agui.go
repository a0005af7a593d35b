// Package agui serves AG-UI over HTTP: its requests ask package thread for streams, and get JSON or problem documents otherwise.
package agui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/api"
	"github.com/waggle-dev/waggle/gateway/binding/thread"
	dialect "github.com/waggle-dev/waggle/gateway/dialect/agui"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/gateway/transport/sse"
	"github.com/waggle-dev/waggle/internal/strictjson"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Prefix is the beginning of the path of every route.
const Prefix = "/agui"

// HeaderThread is the header of an answer that has the id of its thread.
const HeaderThread = "X-Waggle-Thread"

// Messages of a page of the history.
const (
	defaultPage = 100
	maxPage     = 1000
	maxBytes    = 4 << 20 // as of any page
)

// Door is the way in which a gateway lets requests in.
type Door interface {
	// Stream returns the handler of requests that get a response of events. open is called for those of a principal that
	// may watch; nil, nil means that nothing is to be streamed.
	Stream(open func(ctx context.Context, r *http.Request, c thread.Client, to *sse.Response) (*thread.Stream, error)) http.HandlerFunc
	// Serve returns the handler of requests with a JSON answer. client returns the client of a request.
	Serve(h func(r *http.Request, c thread.Client) (any, error)) http.HandlerFunc
	// ServePage is Serve for answers as large as a page.
	ServePage(h func(r *http.Request, c thread.Client) (any, error)) http.HandlerFunc
}

// server answers the requests.
type server struct{ *thread.Threads }

// Mount registers the routes.
func Mount(mux *http.ServeMux, threads *thread.Threads, d Door, version string) {
	t := server{threads}
	handle := func(pattern string, h http.HandlerFunc) { mux.HandleFunc(pattern, patient(h)) }
	handle("POST "+Prefix, d.Stream(t.post))
	handle("GET "+Prefix+"/capabilities", d.Serve(func(*http.Request, thread.Client) (any, error) { return capabilities(version), nil }))
	handle("GET "+Prefix+"/threads/{thread}", d.Stream(t.getThread))
	handle("GET "+Prefix+"/threads/{thread}/runs/{run}", d.Stream(t.getRun))
	handle("GET "+Prefix+"/threads/{thread}/messages", d.ServePage(t.getMessages))
	handle("POST "+Prefix+"/threads/{thread}/cancel", d.Serve(t.postCancel))
	handle("POST "+Prefix+"/threads/{thread}/answers", d.Serve(t.postAnswers))
}

// patient ends the server's deadline for the request once its body is read: a request may wait longer for what it asks for. The
// answer names the thread.
func patient(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if name := r.PathValue("thread"); name != "" {
			w.Header().Set(HeaderThread, url.PathEscape(name))
		}
		rc := http.NewResponseController(w)
		if r.Body == nil || r.Body == http.NoBody {
			_ = rc.SetReadDeadline(time.Time{})
		} else {
			r.Body = &body{r.Body, rc}
		}
		h(w, r)
	}
}

// body is that of a request.
type body struct {
	io.ReadCloser
	rc *http.ResponseController
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (n int, err error) {
	if n, err = b.ReadCloser.Read(p); errors.Is(err, io.EOF) {
		_ = b.rc.SetReadDeadline(time.Time{})
	}
	return n, err
}

// place returns the thread with the name in the tenant of the client.
func place(c thread.Client, name string, v dialect.Variant, to transport.Transport) thread.Place {
	return thread.Place{
		Log: subject.Log{Tenant: c.Principal().Tenant, Kind: id.KindSession, Entity: id.EntityFromExternal(name)}, Name: name, Variant: v, To: to,
	}
}

// variant returns the variant that a client takes: an older one where it says no version.
func variant(r *http.Request, older bool) dialect.Variant {
	q := r.URL.Query()
	switch {
	case strings.HasPrefix(q.Get("version"), "1."), !older && q.Get("version") == "":
		return dialect.V1
	case q.Get("subagents") == "1":
		return dialect.V0Subagents
	}
	return dialect.V0
}

func (t server) post(ctx context.Context, r *http.Request, c thread.Client, to *sse.Response) (*thread.Stream, error) {
	if !c.Principal().MayAct() {
		return nil, fault.New(fault.Forbidden)
	}
	var in wire.Input
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	q, err := dialect.Check(in)
	if err != nil {
		return nil, err
	}
	to.Header().Set(HeaderThread, url.PathEscape(q.ThreadID))
	return t.Run(ctx, c, place(c, q.ThreadID, variant(r, q.Older), to), q)
}

func (t server) getThread(ctx context.Context, r *http.Request, c thread.Client, to *sse.Response) (*thread.Stream, error) {
	after, err := position(r)
	if err != nil {
		return nil, err
	}
	return t.Join(ctx, c, place(c, r.PathValue("thread"), variant(r, false), to), after, r.URL.Query().Get("follow") == "1")
}

func (t server) getRun(ctx context.Context, r *http.Request, c thread.Client, to *sse.Response) (*thread.Stream, error) {
	if err := dialect.CheckRunID(r.PathValue("run")); err != nil {
		return nil, err
	}
	after, err := position(r)
	if err != nil {
		return nil, err
	}
	return t.Again(ctx, c, place(c, r.PathValue("thread"), variant(r, false), to), r.PathValue("run"), after)
}

// position returns where a client that comes back stands, nil for one that has nothing.
func position(r *http.Request) (*transport.Position, error) {
	text, field := r.Header.Get(sse.HeaderResume), sse.HeaderResume
	if text == "" {
		text, field = r.URL.Query().Get("after"), "after"
	}
	if text == "" {
		return nil, nil
	}
	whole, part, parted := strings.Cut(text, ".")
	seq, err := strconv.ParseUint(whole, 10, 64)
	at := transport.Position{Seq: seq}
	if err == nil && parted {
		at.Part, err = strconv.Atoi(part)
	}
	if err != nil || at.String() != text {
		return nil, fault.Newf(fault.CursorInvalid, "%s is not the id of an event of the thread. Use the id of the last event that you received.", field).At(field)
	}
	return &at, nil
}

// decode reads the body strictly.
func decode(r *http.Request, into any) error {
	body, err := io.ReadAll(r.Body)
	if _, big := errors.AsType[*http.MaxBytesError](err); big {
		return fault.New(fault.MessageTooBig)
	}
	if err != nil {
		return fault.New(fault.BadJSON).Wrap(err)
	}
	return strictjson.Decode(body, into)
}

func (t server) getMessages(r *http.Request, c thread.Client) (any, error) {
	limit := defaultPage
	if text := r.URL.Query().Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage {
			return nil, fault.Newf(fault.InvalidField, "limit must be a number from 1 to %d.", maxPage).At("limit")
		}
		limit = n
	}
	page, err := t.History(r.Context(), c, place(c, r.PathValue("thread"), variant(r, false), nil), r.URL.Query().Get("before"), limit)
	if err != nil {
		return nil, err
	}
	return fitting(page)
}

// fitting returns the newest messages of a page that fit into one answer, at least one.
func fitting(page wire.History) (wire.History, error) {
	room := maxBytes
	for i, m := range slices.Backward(page.Messages) {
		b, err := json.Marshal(m)
		if err != nil {
			return page, fmt.Errorf("encode a message: %w", err)
		}
		if room -= len(b) + 1; room < 0 && i < len(page.Messages)-1 {
			page.Messages, page.Before = page.Messages[i+1:], page.Messages[i+1].ID
			break
		}
	}
	return page, nil
}

func (t server) postCancel(r *http.Request, c thread.Client) (any, error) {
	var in wire.Cancel
	if r.ContentLength != 0 {
		if err := decode(r, &in); err != nil {
			return nil, err
		}
	}
	if err := t.Cancel(r.Context(), c, place(c, r.PathValue("thread"), dialect.V1, nil), in); err != nil {
		return nil, err
	}
	return api.Accepted{Answer: map[string]bool{"accepted": true}}, nil
}

func (t server) postAnswers(r *http.Request, c thread.Client) (any, error) {
	var in wire.Answers
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	if err := dialect.CheckResume(in.Resume); err != nil {
		return nil, err
	}
	if err := t.Answer(r.Context(), c, place(c, r.PathValue("thread"), dialect.V1, nil), in.Resume); err != nil {
		return nil, err
	}
	return api.Accepted{Answer: map[string]bool{"accepted": true}}, nil
}

// capabilities say what any thread can do.
func capabilities(version string) wire.Capabilities {
	return wire.Capabilities{
		Identity:       wire.Identity{Name: "waggle", Type: "waggle", Version: version},
		Transport:      wire.TransportCaps{Streaming: true, Resumable: true},
		Tools:          wire.ToolCaps{Supported: true, ClientProvided: true, ParallelCalls: true},
		MultiAgent:     wire.MultiAgentCaps{Supported: true, Delegation: true},
		Reasoning:      wire.ReasoningCaps{Supported: true, Streaming: true},
		HumanInTheLoop: wire.HumanCaps{Supported: true, Approvals: true, Interventions: true, Feedback: true, Interrupts: true, ApproveWithEdits: true},
	}
}

// Problem answers a request that has failed. The document says more where the error does.
func Problem(w http.ResponseWriter, err error, f *fault.Fault) error {
	if detailed, ok := errors.AsType[thread.Detailed](err); ok {
		return answer.With(w, f, maps.Clone(detailed.Members))
	}
	if f.Code == fault.CursorInvalid {
		return answer.Refusal(w, f, http.StatusBadRequest)
	}
	return answer.Fault(w, f)
}
