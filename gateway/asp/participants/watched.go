package participants

import (
	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

var _ stream.Binding = (*watched)(nil)

// findWatched makes out the run that the query names, if it names one. There has to be
// such a run.
func (p *Participant) findWatched() error {
	if p.target == nil {
		return nil
	}
	log, _, unopened, err := binding.Find(p.c, p.target)
	if err != nil {
		return err
	}
	g := &watched{g: p.g, c: p.c, log: log, codec: logCodec{p.codec}, unopened: unopened}
	g.stream = stream.New(p.g.Streams, stream.Options{
		Life: p.c.Context(), Log: log, Codec: g.codec, To: p.c, Slot: p.c.Slot(), Binding: g, Questions: p.c.Client().Questions(),
		Watches: p.c.Client().Watches(), Spare: p.g.QueueBytes / 2, // the inbox must not keep it from ever being read
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run = g
	return nil
}

// showWatched shows the whole run.
func (p *Participant) showWatched() {
	p.mu.Lock()
	g := p.run
	p.mu.Unlock()
	if g != nil {
		g.stream.Watch(eventlog.Cursor{}, nil)
	}
}

// Seen implements stream.Binding.
func (w *watched) Seen(*stream.Stream) {
	if w.unopened != nil {
		w.unopened.Seen()
	}
}

// Expired implements stream.Binding.
func (w *watched) Expired(_ *stream.Stream, first uint64) {
	w.c.Force(transport.Text(w.codec.Truncated(first, w.g.Clock())))
}

// Failed implements stream.Binding.
func (w *watched) Failed(_ *stream.Stream, err error) { binding.Lose(w.c, err) }

// Deleted implements stream.Binding: the client's own tasks continue.
func (w *watched) Deleted(*stream.Stream) { w.c.Tell(fault.New(fault.SessionDeleted)) }

// Notice implements stream.Binding.
func (w *watched) Notice(_ *stream.Stream, d event.NoticeData) {
	w.g.ShowNotice(w.c, w.codec, w.log, d)
}
