package binding

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/payload"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Gateway is the part of a gateway that its bindings share. Its fields do not change once
// the first connection is open.
type Gateway struct {
	*edge.Edge

	Started   time.Time            // by Clock
	Life      context.Context      //nolint:containedctx // of the gateway
	Directory *directory.Directory // nil: services are taken to be there
	Payloads  *payload.Store
	Metrics   Metrics

	QueueBytes   int           // that may wait for one client
	MessageRate  float64       // of one connection
	MessageBurst int           // that may come at once
	ReadyTimeout time.Duration // for which a connection waits for services

	// MayOpenInbox returns why the principal may not be a new client of the swarm; nil: every one may.
	MayOpenInbox func(auth.Principal) error
	// WorkersMissing reports whether no worker runs.
	WorkersMissing func() bool
	// Go runs f, for which a stop of the gateway waits. An open connection has to be
	// counted while it is called.
	Go func(f func())
	// Later is Go without a connection. It does nothing once the gateway has stopped.
	Later func(f func())
}

// Metrics are the counters of bindings.
type Metrics struct {
	Acks        prometheus.Counter     // sent on
	DroppedAcks prometheus.Counter     // not understood, or too fast
	Lost        prometheus.Counter     // direct messages without room in the queue
	Faults      *prometheus.CounterVec // told, by code
	Dropped     *prometheus.CounterVec // frames without effect and answer, by code
	Oversized   *prometheus.CounterVec // frames of the swarm, by role
	Resumes     *prometheus.CounterVec // streams of threads that were begun anew, by kind: warm, cold
	Expired     prometheus.Counter     // positions in threads that could not be resumed
}

// Link returns the facts that frames may tell about a connection.
func (g *Gateway) Link(connection id.Name) dialect.Link {
	now := g.Clock()
	return dialect.Link{ConnectionID: connection.String(), Now: now, Uptime: now.Sub(g.Started)}
}

// ShowDirect shows a direct message in the codec. It drops frames for which the queue of a
// client that does not read has no room: the client sees the end of the log when it reads
// again. A refusal without a frame is shown as its fault.
func (g *Gateway) ShowDirect(c transport.Transport, codec stream.Codec, log subject.Log, e event.Event) {
	stream.Safely(g.Logger, log, func() {
		frames := codec.Encode(e)
		if d, err := event.As[event.CommandRefusedData](e); len(frames) == 0 && e.Type == event.CommandRefused && err == nil {
			f := fault.Newf(fault.Code(d.Code), "%s", d.Message).At(d.Field)
			frames = [][]byte{codec.Fail(f, g.Clock())}
		}
		for _, p := range frames {
			if !c.Force(transport.Text(p)) {
				g.Metrics.Lost.Inc()
			}
		}
	})
}

// ShowNotice shows a notice that is in no log.
func (g *Gateway) ShowNotice(c transport.Transport, codec stream.Codec, log subject.Log, d event.NoticeData) {
	e, err := event.New(log, edge.NewID(), g.Source, g.Clock(), d)
	if err != nil {
		g.Logger.Error().Err(err).Msg("failed to encode notice")
		return
	}
	g.ShowDirect(c, codec, log, e)
}

// Lose ends a connection whose log cannot be read any more.
func Lose(c Connection, err error) {
	switch {
	case errors.Is(err, eventlog.ErrClosed):
		c.End(fault.New(fault.Draining))
	case errors.Is(err, eventlog.ErrBeyondEnd):
		c.End(fault.New(fault.CursorInvalid))
	default:
		c.End(c.FaultOf(err))
	}
}
