package gateway

import (
	"context"
	"net/http"

	"github.com/waggle-dev/waggle/gateway/agui"
	"github.com/waggle-dev/waggle/gateway/aisdk"
	"github.com/waggle-dev/waggle/gateway/aisdk/chat"
	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/events"
	"github.com/waggle-dev/waggle/gateway/transport/sse"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// conversation is the stream of a protocol whose frames depend on more than one event.
type conversation interface {
	comparable
	events.Binding
	Over() bool // nothing remains to be streamed
	Begin()
}

// shows returns the handler of requests that are shown a conversation. open is called for those of a principal that may watch;
// nothing is streamed if it returns none.
func shows[C conversation](s *streams, protocol string, open func(context.Context, *http.Request, *edge.Client, *sse.Response) (C, error)) http.HandlerFunc {
	return s.serveStream(protocol, func(e *eventStream, r *http.Request) error {
		p := e.client.Principal()
		if r.Method == http.MethodPost {
			if _, err := s.door.quota.Allow(p.Tenant, p.Subject); err != nil {
				return err
			}
		}
		r = respond.Traced(r)
		var none C
		c, err := open(r.Context(), r, &e.client, e.to)
		switch {
		case err != nil && c != none:
			c.Close()
			return err
		case err != nil:
			return err
		case c == none:
			e.nothing = true
			return nil
		case c.Over():
			c.Close()
			e.nothing = true
			return nil
		}
		c.Begin()
		e.shown = c
		return nil
	})
}

// streamThread returns the handler of requests that are shown a thread.
func (s *streams) streamThread(open agui.Open) http.HandlerFunc {
	return shows(s, protocolThreads, open)
}

// streamChat returns the handler of requests that are shown a chat.
func (s *streams) streamChat(open aisdk.Open) http.HandlerFunc {
	return shows(s, protocolChats, open)
}

// threadServer answers the requests about threads that get no stream.
func (s *streams) threadServer() respond.Server {
	return respond.Server{Auth: s.door.gate, Edge: s.shared.Edge, Protocol: protocolThreads, Admit: s.door.admitRequest, Refuse: agui.Problem}
}

// chatServer answers the requests about chats that get no stream.
func (s *streams) chatServer() respond.Server {
	return respond.Server{Auth: s.door.gate, Edge: s.shared.Edge, Protocol: protocolChats, Admit: s.door.admitRequest, Refuse: aisdk.Problem}
}

// problem answers a request for a stream of the protocol that has failed.
func problem(protocol string, w http.ResponseWriter, err error, f *fault.Fault) error {
	switch protocol {
	case protocolThreads:
		return agui.Problem(w, err, f)
	case protocolChats:
		return aisdk.Problem(w, err, f)
	}
	return answer.Fault(w, f)
}

// end ends a response of the protocol. Clients of AG-UI take no events but those of a run.
func end(protocol string, to *sse.Response, f *fault.Fault) {
	switch protocol {
	case protocolThreads:
		to.End(f)
	case protocolChats:
		chat.End(to, f)
	default:
		events.End(to, f)
	}
}
