package gateway

import (
	"github.com/waggle-dev/waggle/gateway/transport/ws"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

var _ audience = (*glance)(nil)

// glance is the run that a client of the swarm watches, beside its inbox.
type glance struct {
	c    *conn
	feed *feed
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
	g := &glance{c: p.c}
	g.feed = newFeed(p.c, log, spoken{p.codec}, g)
	g.feed.spare = p.c.s.cfg.QueueBytes / 2 // the inbox must not keep it from ever being read
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
		g.feed.watchFrom(nil, eventlog.Cursor{}, 0)
	}
}

// watched returns the log of the run that the socket shows, zero if there is none.
func (p *peer) watched() subject.Log {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.glance == nil {
		return subject.Log{}
	}
	return p.glance.feed.log
}

// seen implements audience.
func (g *glance) seen() {}

// expired implements audience.
func (g *glance) expired(f *feed, first uint64) {
	g.c.sock.Force(ws.Text(f.codec.Truncated(first, g.c.s.dep.Clock())))
}

// failed implements audience.
func (g *glance) failed(_ *feed, err error) { g.c.lost(err) }

// deleted implements audience: the client's own tasks go on.
func (g *glance) deleted(*feed) { g.c.tell(fault.New(fault.SessionDeleted)) }
