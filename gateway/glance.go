package gateway

import (
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

var _ stream.Binding = (*glance)(nil)

// glance is the run that a client of the swarm watches, beside its inbox.
type glance struct {
	c      *conn
	log    subject.Log
	codec  spoken
	stream *stream.Stream
}

// findWatched makes out the run that the query names, if it names one. There has to be
// such a run.
func (p *peer) findWatched() error {
	if p.c.watch == nil {
		return nil
	}
	log, _, err := p.c.find(p.c.watch)
	if err != nil {
		return err
	}
	g := &glance{c: p.c, log: log, codec: spoken{p.codec}}
	g.stream = stream.New(p.c.ctx, p.c.s.streams, stream.Options{
		Log: log, Codec: g.codec, To: p.c.sock, Slot: p.c.slot, Binding: g,
		Spare: p.c.s.cfg.QueueBytes / 2, // the inbox must not keep it from ever being read
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.glance = g
	return nil
}

// showWatched shows the whole run.
func (p *peer) showWatched() {
	p.mu.Lock()
	g := p.glance
	p.mu.Unlock()
	if g != nil {
		g.stream.WatchBehind(nil, eventlog.Cursor{}, 0)
	}
}

// watched returns the log of the run that the socket shows, zero if there is none.
func (p *peer) watched() subject.Log {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.glance == nil {
		return subject.Log{}
	}
	return p.glance.log
}

// Seen implements stream.Binding.
func (g *glance) Seen() {}

// Expired implements stream.Binding.
func (g *glance) Expired(_ *stream.Stream, first uint64) {
	g.c.sock.Force(transport.Text(g.codec.Truncated(first, g.c.s.dep.Clock())))
}

// Failed implements stream.Binding.
func (g *glance) Failed(_ *stream.Stream, err error) { g.c.lost(err) }

// Deleted implements stream.Binding: the client's own tasks go on.
func (g *glance) Deleted(*stream.Stream) { g.c.tell(fault.New(fault.SessionDeleted)) }

// Notice implements stream.Binding.
func (g *glance) Notice(_ *stream.Stream, d event.NoticeData) { g.c.notice(g.codec, g.log, d) }
