package ledger

import (
	"bytes"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/klauspost/compress/s2"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// restingBytes bounds the folds at rest: some 2,000 short chats, or 20 of the longest.
	restingBytes = 4 << 20
	// restWeight is what a fold at rest takes besides its state, and keyWeight what a key of its outbox takes.
	restWeight = 500
	keyWeight  = 100
)

// Rest is the fold of a log as compressed bytes. It takes a tenth of the memory, and gives the garbage collector nothing to
// look through. Waking it costs less than to read the log, or its newest snapshot, again.
type Rest struct {
	state  []byte
	at     eventlog.Cursor
	last   string
	stored uint64
	place  place
	size   uint64
	armed  time.Time
	outbox Outbox
}

func (r *Rest) weight() int {
	return restWeight + len(r.state) + keyWeight*(len(r.outbox.done)+len(r.outbox.sent))
}

// Rest returns the fold as bytes, with which the log has to be opened again. It returns nil if the log is in use, can store no
// snapshots, or has to be read anew. The caller is the log's last user.
func (l *Log[S]) Rest() *Rest {
	x := l.cfg.Snapshots
	if x == nil || !l.mu.TryLock() {
		return nil
	}
	defer l.mu.Unlock()
	at := l.writer.Cursor()
	if at.Seq == 0 || l.broken != nil || l.start != nil || l.wrong || l.puts != nil || l.writer.Deleted() {
		return nil
	}
	raw, err := x.Encode(&l.state)
	if err != nil || raw == nil {
		return nil
	}
	r := &Rest{
		state: bytes.Clone(s2.Encode(nil, raw)), // without the room for what does not compress
		at:    at, last: l.last, stored: l.stored, place: l.place, size: l.size.Load(), armed: l.armed,
	}
	l.Outbox.move(&r.outbox)
	return r
}

// Wake begins a log that has read nothing yet with its fold at rest. A log without one, or with one that cannot be decoded, is
// read as before.
func (l *Log[S]) Wake(r *Rest) {
	if r == nil {
		return
	}
	x := l.cfg.Snapshots
	raw, err := s2.Decode(nil, r.state)
	if err != nil {
		return
	}
	state, err := x.Decode(raw)
	if err != nil || x.Seq(state) != r.at.Seq {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state, l.begun, l.last, l.stored, l.place, l.armed = *state, true, r.last, r.stored, r.place, r.armed
	l.size.Store(r.size)
	l.writer = l.cfg.Store.WriterAfter(l.Ref, r.at, l.fold)
	r.outbox.move(&l.Outbox)
	if l.cfg.Begun != nil {
		l.cfg.Begun(&l.state)
	}
}

// Resting keeps folds at rest; the one that rests longest goes first. It is safe for concurrent use.
type Resting struct {
	mu    sync.Mutex
	rests *simplelru.LRU[subject.Log, *Rest]
	bytes int
}

// NewResting returns a Resting without a fold.
func NewResting() (*Resting, error) {
	x := &Resting{}
	var err error
	x.rests, err = simplelru.NewLRU(restingBytes/restWeight, func(_ subject.Log, r *Rest) { x.bytes -= r.weight() })
	return x, err
}

// Put keeps a fold at rest in place of an earlier one of the log; a nil r only discards that one.
func (x *Resting) Put(ref subject.Log, r *Rest) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rests.Remove(ref)
	if r == nil || r.weight() > restingBytes { // which would displace all others, and then itself
		return
	}
	x.bytes += r.weight()
	x.rests.Add(ref, r)
	for x.bytes > restingBytes {
		x.rests.RemoveOldest()
	}
}

// Take returns the fold at rest of a log, which is no longer kept; nil if none is.
func (x *Resting) Take(ref subject.Log) *Rest {
	x.mu.Lock()
	defer x.mu.Unlock()
	r, _ := x.rests.Peek(ref)
	x.rests.Remove(ref)
	return r
}
