package gateway

import (
	"context"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/transport/ws"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// audience hears what becomes of the logs that a socket shows. It is called by the
// log's goroutines: no method blocks, and none closes a feed.
type audience interface {
	// seen: the log exists.
	seen()
	// expired: the events before first are gone, and the feed goes on with it.
	expired(f *feed, first uint64)
	// failed: nothing more comes of the feed.
	failed(f *feed, err error)
	// deleted: the log was deleted, and nothing more comes of the feed.
	deleted(f *feed)
}

// frameKey keeps the keys of remembered frames apart from anybody else's.
type frameKey string

// feed shows a log on a socket. It is the socket's sink: when the socket's queue is
// full the log goes on without it, and brings it up to date when it has drained.
type feed struct {
	c     *conn
	log   subject.Log
	codec dialect.Codec
	key   any // under which an entry remembers the codec's frames
	to    audience
	spare int                    // bytes that may be kept for when the queue has room, besides a part of an entry
	build func() any             // builds the frames of entry; made once
	entry *eventlog.Entry        // of build; callbacks come one at a time
	begun partly                 // what the client has of the first event
	hides func(event.Event) bool // the client shows the event itself; nil = none
	shown func(*eventlog.Entry)  // called for each entry that was taken, with the feed locked; may be nil

	mu     sync.Mutex // guards what follows: a sink may be called before Watch has returned
	v      *eventlog.Viewer
	at     eventlog.Cursor // after the last entry shown
	rest   []ws.Frame      // what the queue had no room for
	pieces *pieces         // puts texts together; nil = entries are shown one by one
	replay *replay         // until what was missed has been shown
	held   bool            // nothing is taken for now
	from   uint64          // the sequence after which it began
	stand  standing        // whether the run that is shown waits for a worker
	over   bool            // closed
	got    *fetch          // what is loaded to be shown next; nil = nothing is

	ctx     context.Context //nolint:containedctx // the life of what is loaded
	cancel  context.CancelFunc
	fetches sync.WaitGroup
}

// partly says that of the event with the sequence the first frames are not to be sent:
// the client has them.
type partly struct {
	seq    uint64
	frames int
}

// batches holds what several entries become, so that they leave in few writes.
var batches = sync.Pool{New: func() any { return new([]ws.Frame) }}

// newFeed returns a feed that shows nothing yet.
func newFeed(c *conn, log subject.Log, codec dialect.Codec, to audience) *feed {
	f := &feed{c: c, log: log, codec: codec, key: frameKey(codec.Name()), to: to}
	f.build = f.encode
	f.ctx, f.cancel = context.WithCancel(c.ctx)
	return f
}

// watch begins to show the log after the position.
func (f *feed) watch(after eventlog.Cursor) {
	f.mu.Lock()
	f.at, f.from = after, after.Seq
	f.mu.Unlock()
	v := f.c.s.dep.Log.Watch(f.log, after, f)
	f.mu.Lock()
	f.v = v
	over := f.over
	f.mu.Unlock()
	if over { // closed by a callback that came before Watch had returned
		v.Close()
		return
	}
	v.Resume() // in case that it was full before anybody could have said so
}

// watchFrom is watch with frames that come before anything of the log, and without the
// first skip frames of the next event. No room is too small for what comes first: it
// waits like all that is shown.
func (f *feed) watchFrom(first [][]byte, after eventlog.Cursor, skip int) {
	f.mu.Lock()
	f.begun = partly{after.Seq + 1, skip}
	for _, p := range first {
		f.rest = append(f.rest, ws.Text(p))
	}
	f.flush()
	f.mu.Unlock()
	f.watch(after)
}

// position returns the sequence of the last entry that was shown.
func (f *feed) position() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at.Seq
}

// low is called when the socket's queue has room again.
func (f *feed) low() {
	f.mu.Lock()
	f.flush()
	v := f.v
	f.mu.Unlock()
	if v != nil {
		v.Resume()
	}
}

// flush queues what was left over and reports whether nothing is left. The caller
// has locked.
func (f *feed) flush() bool {
	if len(f.rest) > 0 {
		f.rest = f.rest[f.c.sock.Send(f.rest...):]
	}
	return len(f.rest) == 0
}

// close ends the feed. When it returns, nothing more comes of it.
func (f *feed) close() {
	f.mu.Lock()
	v := f.v
	f.over, f.rest = true, nil
	if f.pieces != nil {
		f.pieces.flush()
	}
	f.mu.Unlock()
	f.cancel()
	if v != nil {
		v.Close()
	}
	f.fetches.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.passOn()()
}

// Deliver implements eventlog.Sink. An entry is encoded once per codec, whoever
// watches it, and what comes together leaves together.
func (f *feed) Deliver(batch []*eventlog.Entry) int {
	f.to.seen()
	taken := f.deliver(batch)
	if taken > 0 && batch[taken-1].Type.Tombstone() {
		f.to.deleted(f)
	}
	return taken
}

func (f *feed) deliver(batch []*eventlog.Entry) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.goesOn(batch)
	whole, taken := f.whole(batch), 0
	if !f.held && f.flush() && f.replay != nil {
		taken = f.replay.show(f, whole)
	}
	if !f.held && len(f.rest) == 0 && f.replay == nil {
		taken += f.show(whole[taken:])
	}
	for _, e := range batch[:taken] {
		f.stand.follow(e.Event)
	}
	if taken == len(whole) && taken < len(batch) {
		f.fetch(batch[taken])
	}
	if taken < len(batch) {
		f.c.s.met.lags.Inc()
	}
	return taken
}

// show queues entries as they are and returns how many it has taken. The caller has
// locked.
func (f *feed) show(batch []*eventlog.Entry) int {
	if len(batch) == 0 {
		return 0
	}
	if f.pieces != nil {
		return f.gather(batch)
	}
	var sent int
	switch len(batch) {
	case 1:
		sent = f.send(f.frames(batch[0]))
	default:
		all, _ := batches.Get().(*[]ws.Frame)
		for _, e := range batch {
			*all = append(*all, f.frames(e)...)
		}
		sent = f.send(*all)
		clear(*all)
		*all = (*all)[:0]
		batches.Put(all)
	}
	return f.took(batch, sent)
}

func (f *feed) send(frames []ws.Frame) int {
	if len(frames) == 0 {
		return 0
	}
	return f.c.sock.Send(frames...)
}

// took returns of how many entries the first frames have been sent, and keeps what
// is left of the last of them.
func (f *feed) took(batch []*eventlog.Entry, sent int) int {
	for i, e := range batch {
		frames := f.frames(e)
		if sent == 0 && len(frames) > 0 {
			return i + f.keep(batch[i:])
		}
		f.take(e)
		if sent < len(frames) {
			f.rest = slices.Clone(frames[sent:])
			return i + 1
		}
		sent -= len(frames)
	}
	return len(batch)
}

// keep takes entries that the queue had no room for, within the feed's own spare
// room, and returns how many. So every feed of a socket has something to send when
// there is room again, however long it takes to read on in its log.
func (f *feed) keep(batch []*eventlog.Entry) (n int) {
	for kept := 0; n < len(batch) && kept < f.spare; n++ {
		for _, p := range f.frames(batch[n]) {
			f.rest = append(f.rest, p)
			kept += len(p)
		}
		f.take(batch[n])
	}
	return n
}

func (f *feed) take(e *eventlog.Entry) {
	f.at = e.Cursor()
	if f.shown != nil {
		f.shown(e)
	}
}

func (f *feed) frames(e *eventlog.Entry) []ws.Frame {
	f.entry = e
	if late(e.Event, f.c.s.dep.Clock()) || f.hides != nil && f.hides(e.Event) {
		return nil
	}
	frames, _ := e.Memo(f.key, f.build).([]ws.Frame)
	if e.Sequence == f.begun.seq {
		return frames[min(f.begun.frames, len(frames)):]
	}
	return frames
}

// late reports whether the event is a message between clients that was to be shown
// by an earlier time.
func late(e event.Event, now time.Time) bool {
	if e.Type != event.InboxMessaged {
		return false
	}
	m, err := event.As[event.InboxMessagedData](e)
	return err == nil && !m.ExpiresAt.IsZero() && now.After(m.ExpiresAt)
}

// encode builds the frames of an entry.
func (f *feed) encode() any {
	var out []ws.Frame
	ok := f.c.safely(f.log, func() {
		payloads := f.codec.Encode(f.entry.Event)
		out = make([]ws.Frame, 0, len(payloads))
		for _, p := range payloads {
			out = append(out, ws.Text(p))
		}
	})
	if !ok {
		out = []ws.Frame{ws.Text(f.codec.Fail(fault.New(fault.Internal), f.c.s.dep.Clock()))}
	}
	return out
}

// safely calls a codec for a log and reports whether it returned: one that panics
// must not take every gateway down with the log that it cannot read.
func (c *conn) safely(log subject.Log, encode func()) (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			c.s.dep.Logger.Error().Interface("panic", r).Bytes("stack", debug.Stack()).
				Stringer("log", log).Msg("an event cannot be encoded")
			ok = false
		}
	}()
	encode()
	return true
}

// Truncated implements eventlog.Sink.
func (f *feed) Truncated(first uint64) { f.to.expired(f, first) }

// CaughtUp implements eventlog.Sink.
func (f *feed) CaughtUp(uint64) {}

// Failed implements eventlog.Sink.
func (f *feed) Failed(err error) { f.to.failed(f, err) }
