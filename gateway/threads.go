package gateway

import (
	"context"
	"net/http"

	"github.com/waggle-dev/waggle/gateway/agui"
	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/binding/thread"
	"github.com/waggle-dev/waggle/gateway/trail"
	"github.com/waggle-dev/waggle/gateway/transport/sse"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// headerTrace is the header with the trace that a request belongs to (W3C trace context).
const headerTrace = "traceparent"

// threadDoor lets requests about threads in.
type threadDoor struct{ s *Server }

var _ agui.Door = threadDoor{}

// Stream implements agui.Door.
func (d threadDoor) Stream(open func(context.Context, *http.Request, thread.Client, *sse.Response) (*thread.Stream, error)) http.HandlerFunc {
	return d.s.serveStream(protocolThreads, func(e *events, r *http.Request) error {
		if r.Method == http.MethodPost {
			if _, err := d.s.dep.Quota.Allow(e.who.Tenant, e.who.Subject); err != nil {
				return err
			}
		}
		ctx := telemetry.Extract(r.Context(), r.Header.Get(headerTrace))
		st, err := open(ctx, r, requester{d.s, e.who, e.record}, e.to)
		switch {
		case err != nil && st != nil:
			st.Close()
			return err
		case err != nil:
			return err
		case st.Over():
			st.Close()
			e.nothing = true
			return nil
		}
		st.Begin()
		e.shown = st
		return nil
	})
}

// Serve implements agui.Door.
func (d threadDoor) Serve(h func(*http.Request, thread.Client) (any, error)) http.HandlerFunc {
	return d.server().Serve(d.handler(h))
}

// ServePage implements agui.Door.
func (d threadDoor) ServePage(h func(*http.Request, thread.Client) (any, error)) http.HandlerFunc {
	return d.server().ServePage(d.handler(h))
}

func (d threadDoor) server() respond.Server {
	return respond.Server{Auth: d.s.gate, Logger: d.s.dep.Logger, Admit: d.s.admitRequest, Room: d.s.room, Refuse: agui.Problem}
}

func (d threadDoor) handler(h func(*http.Request, thread.Client) (any, error)) respond.Handler {
	return func(r *http.Request, p auth.Principal) (any, error) {
		r = r.WithContext(telemetry.Extract(r.Context(), r.Header.Get(headerTrace)))
		return h(r, requester{d.s, p, func(action id.Name, rec audit.Record) {
			rec.Principal, rec.Remote, rec.Dialect = p.Subject, d.s.dep.Audit.Remote(r.RemoteAddr), protocolThreads
			d.s.dep.Audit.Record(action, p.Tenant, rec)
		}})
	}
}

// requester is the client of one request.
type requester struct {
	s      *Server
	who    auth.Principal
	record func(id.Name, audit.Record)
}

// Principal implements thread.Client.
func (c requester) Principal() auth.Principal { return c.who }

// Room implements thread.Client.
func (c requester) Room(ctx context.Context, bytes int) (thread.Part, error) {
	if bytes <= answer.Small {
		return nil, nil //nolint:nilnil // a small answer needs none
	}
	part, err := c.s.room.Enter(ctx, c.who.Tenant.String()+"/"+c.who.Subject, bytes)
	if part == nil {
		return nil, err
	}
	return part, err
}

// Command implements thread.Client.
func (c requester) Command(ctx context.Context, replyTo string, cmds ...command.Command) error {
	if !c.who.MayAct() {
		return fault.New(fault.Forbidden)
	}
	cmds, err := c.s.ready(ctx, c.who, nil, cmds, c.record)
	if err != nil {
		return err
	}
	if err := c.s.send(ctx, replyTo, cmds); err != nil {
		return err
	}
	for _, cmd := range cmds {
		if r, ok := trail.Of(cmd); ok {
			c.record(audit.Command, r)
		}
	}
	return nil
}
