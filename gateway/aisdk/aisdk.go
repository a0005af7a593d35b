// Package aisdk serves pages of the AI SDK (useChat) over HTTP: the UI message stream protocol. Its requests ask package chat for
// streams, and get JSON or problem documents otherwise.
package aisdk

import (
	"context"
	"errors"
	"net/http"

	"github.com/waggle-dev/waggle/gateway/aisdk/chat"
	"github.com/waggle-dev/waggle/gateway/aisdk/fold"
	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/api/request"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/gateway/transport/sse"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Prefix is the path of the requests that say something, and the beginning of the others.
const Prefix = "/ai/chat"

// HeaderVersion is the header of an answer that has the version of the protocol.
const HeaderVersion = "X-Vercel-Ai-Ui-Message-Stream"

// version is that of the protocol.
const version = "v1"

// maxBody bounds the body of a request. The gateway's own bound may be lower.
const maxBody = 1 << 20

// Open opens the stream of a request.
type Open = func(ctx context.Context, r *http.Request, c *edge.Client, to *sse.Response) (*chat.Stream, error)

// server answers the requests.
type server struct{ *chat.Chats }

// Mount registers the routes. stream returns the handler of requests that get a response of chunks, and answer serves the others.
func Mount(mux *http.ServeMux, chats *chat.Chats, stream func(Open) http.HandlerFunc, answer respond.Server) {
	t := server{chats}
	mux.HandleFunc("POST "+Prefix, request.Patient(stream(t.post)))
	mux.HandleFunc("GET "+Prefix+"/{chat}/stream", request.Patient(stream(t.resume)))
	mux.HandleFunc("GET "+Prefix+"/{chat}/messages", answer.ServePage(t.messages))
	mux.HandleFunc("POST "+Prefix+"/{chat}/stop", answer.Serve(t.stop))
}

// place returns the chat with the name in the tenant of the client.
func place(r *http.Request, c *edge.Client, name string, to chat.Response) chat.Place {
	at := chat.Place{To: to, Options: fold.Options{Seven: r.URL.Query().Get("version") == "7"}}
	at.Log = subject.Log{Tenant: c.Principal().Tenant, Kind: id.KindSession, Entity: id.EntityFromExternal(name)}
	return at
}

func (t server) post(ctx context.Context, r *http.Request, c *edge.Client, to *sse.Response) (*chat.Stream, error) {
	if !c.Principal().MayAct() {
		return nil, fault.New(fault.Forbidden)
	}
	var q fold.Request
	if err := request.Decode(r, maxBody, &q, true); err != nil {
		return nil, err
	}
	if err := q.Check(); err != nil {
		return nil, err
	}
	s, err := t.Send(ctx, c, place(r, c, q.ID, to), &q)
	return versioned(s, to, err)
}

func (t server) resume(ctx context.Context, r *http.Request, c *edge.Client, to *sse.Response) (*chat.Stream, error) {
	after, err := position(r)
	if err != nil {
		return nil, err
	}
	s, err := t.Resume(ctx, c, place(r, c, r.PathValue("chat"), to), after)
	if errors.Is(err, fault.New(fault.SessionNotFound)) && after == nil { // a page asks before the first message
		return nil, nil
	}
	return versioned(s, to, err)
}

// versioned has the answer name the version of the protocol.
func versioned(s *chat.Stream, to *sse.Response, err error) (*chat.Stream, error) {
	if err == nil {
		to.Header().Set(HeaderVersion, version)
	}
	return s, err
}

func (t server) messages(r *http.Request, c *edge.Client) (any, error) {
	return t.History(r.Context(), c, place(r, c, r.PathValue("chat"), nil))
}

func (t server) stop(r *http.Request, c *edge.Client) (any, error) {
	var in struct {
		RunID string `json:"runId"`
	}
	if err := request.Decode(r, maxBody, &in, false); err != nil {
		return nil, err
	}
	if err := t.Stop(r.Context(), c, place(r, c, r.PathValue("chat"), nil), in.RunID); err != nil {
		return nil, err
	}
	return respond.Accepted{Answer: map[string]bool{"accepted": true}}, nil
}

// position returns where a client that comes back stands, nil for one that has nothing.
func position(r *http.Request) (*transport.Position, error) {
	text := r.Header.Get(sse.HeaderResume)
	if text == "" {
		return nil, nil
	}
	at, ok := transport.ParsePosition(text)
	if !ok {
		return nil, fault.Newf(fault.CursorInvalid, "%s is not the id of an event of the chat. Use the id of the last event that you received.", sse.HeaderResume).At(sse.HeaderResume)
	}
	return &at, nil
}

// Problem answers a request that has failed.
func Problem(w http.ResponseWriter, err error, f *fault.Fault) error {
	if expired, ok := errors.AsType[chat.Expired](err); ok {
		return answer.With(w, f, map[string]any{"first": expired.First})
	}
	if f.Code == fault.CursorInvalid {
		return answer.Refusal(w, f, http.StatusBadRequest)
	}
	return answer.Fault(w, f)
}
