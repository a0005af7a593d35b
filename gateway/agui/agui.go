// Package agui serves AG-UI over HTTP: its requests ask package thread for streams, and get JSON or problem documents otherwise.
package agui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/waggle-dev/waggle/gateway/agui/fold"
	"github.com/waggle-dev/waggle/gateway/agui/fold/input"
	"github.com/waggle-dev/waggle/gateway/agui/thread"
	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/api/request"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/transport/sse"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
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

// Open opens the stream of a request; nil, nil means that nothing is to be streamed.
type Open = func(ctx context.Context, r *http.Request, c *edge.Client, to *sse.Response) (*thread.Stream, error)

// bases are the beginnings of the paths of requests: of sessions, whose messages the model answers, or an agent of the swarm, and of
// teams.
var bases = []string{Prefix, Prefix + "/agents/{" + pathAgent + "}", Prefix + "/teams/{" + pathTeam + "}"}

// Mount registers the routes. stream returns the handler of requests that get a response of events, and answer serves the others.
func Mount(mux *http.ServeMux, threads *thread.Threads, stream func(Open) http.HandlerFunc, answer respond.Server, version string) {
	t := server{threads, version}
	for _, base := range bases {
		handle := func(method, path string, h http.HandlerFunc) {
			mux.HandleFunc(method+" "+base+path, named(request.Patient(h)))
		}
		handle(http.MethodPost, "", stream(t.post))
		handle(http.MethodGet, "/capabilities", answer.ServePage(t.getCapabilities))
		handle(http.MethodGet, "/threads/{thread}", stream(t.getThread))
		handle(http.MethodGet, "/threads/{thread}/runs/{run}", stream(t.getRun))
		handle(http.MethodGet, "/threads/{thread}/messages", answer.ServePage(t.getMessages))
		handle(http.MethodPost, "/threads/{thread}/cancel", answer.Serve(t.postCancel))
		handle(http.MethodPost, "/threads/{thread}/answers", answer.Serve(t.postAnswers))
	}
}

// named returns the handler with an answer that names the thread.
func named(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if name := r.PathValue("thread"); name != "" {
			w.Header().Set(HeaderThread, url.PathEscape(name))
		}
		h(w, r)
	}
}

func (t server) post(ctx context.Context, r *http.Request, c *edge.Client, to *sse.Response) (*thread.Stream, error) {
	if !c.Principal().MayAct() {
		return nil, fault.New(fault.Forbidden)
	}
	var in wire.Input
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	q, err := input.Check(in, answers(r))
	if err != nil {
		return nil, err
	}
	to.Header().Set(HeaderThread, url.PathEscape(q.ThreadID))
	return t.Run(ctx, c, place(r, c, q.ThreadID, variant(r, q.Older), to), q)
}

func (t server) getThread(ctx context.Context, r *http.Request, c *edge.Client, to *sse.Response) (*thread.Stream, error) {
	after, err := position(r)
	if err != nil {
		return nil, err
	}
	return t.Join(ctx, c, place(r, c, r.PathValue("thread"), variant(r, false), to), after, r.URL.Query().Get("follow") == "1")
}

func (t server) getRun(ctx context.Context, r *http.Request, c *edge.Client, to *sse.Response) (*thread.Stream, error) {
	if err := input.CheckRunID(r.PathValue("run")); err != nil {
		return nil, err
	}
	after, err := position(r)
	if err != nil {
		return nil, err
	}
	return t.Again(ctx, c, place(r, c, r.PathValue("thread"), variant(r, false), to), r.PathValue("run"), after)
}

func (t server) getMessages(r *http.Request, c *edge.Client) (any, error) {
	limit := defaultPage
	if text := r.URL.Query().Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage {
			return nil, fault.Newf(fault.InvalidField, "limit must be a number from 1 to %d.", maxPage).At("limit")
		}
		limit = n
	}
	page, err := t.History(r.Context(), c, place(r, c, r.PathValue("thread"), variant(r, false), nil), r.URL.Query().Get("before"), limit)
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

func (t server) postCancel(r *http.Request, c *edge.Client) (any, error) {
	var in wire.Cancel
	if r.ContentLength != 0 {
		if err := decode(r, &in); err != nil {
			return nil, err
		}
	}
	if err := t.Cancel(r.Context(), c, place(r, c, r.PathValue("thread"), fold.V1, nil), in); err != nil {
		return nil, err
	}
	return respond.Accepted{Answer: map[string]bool{"accepted": true}}, nil
}

func (t server) postAnswers(r *http.Request, c *edge.Client) (any, error) {
	var in wire.Answers
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	if err := input.CheckResume(in.Resume); err != nil {
		return nil, err
	}
	if err := t.Answer(r.Context(), c, place(r, c, r.PathValue("thread"), fold.V1, nil), in); err != nil {
		return nil, err
	}
	return respond.Accepted{Answer: map[string]bool{"accepted": true}}, nil
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
