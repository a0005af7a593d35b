package stream

import (
	"slices"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Fold is what the events of a log make that are taken in order.
type Fold[F any] interface {
	Take(e event.Event)
	// Fork returns a copy that continues by itself.
	Fork() F
	// Size returns about how many bytes the fold takes.
	Size() int
}

// Bounds of Folds.
const (
	maxFolds  = 1024
	markEvery = 1000 // events between two marks of a log at first
)

// Folds is a cache of the folds of recently used logs: of each log the fold at its end, and marks within it from which a
// fold at another position continues. They only save time. K names a log and the way to fold it. All methods are
// safe for concurrent use.
type Folds[K comparable, F Fold[F]] struct {
	begin func(K) F
	bytes int // of all, at most
	marks int // of one log, at most

	mu   sync.Mutex
	all  *simplelru.LRU[K, *folded[F]]
	used int // bytes of all, about
}

// folded is the folds of one log.
type folded[F Fold[F]] struct {
	used int // that Folds counts for it; guarded by its lock

	mu    sync.Mutex
	tip   mark[F]
	marks []mark[F] // the oldest first
	every uint64    // events between two of them
}

// mark is a fold of the events up to a position.
type mark[F Fold[F]] struct {
	fold F
	at   eventlog.Cursor
}

// NewFolds returns a cache of folds that take about so many bytes at most, with so many marks of one log. begin returns the fold
// of no events.
func NewFolds[K comparable, F Fold[F]](bytes, marks int, begin func(K) F) *Folds[K, F] {
	c := &Folds[K, F]{begin: begin, bytes: bytes, marks: marks}
	c.all, _ = simplelru.NewLRU(maxFolds, func(_ K, f *folded[F]) { c.used -= f.used }) // fails for sizes below 1 only
	return c
}

// Reader calls take with the events after a position in order, as far as its user wants them.
type Reader func(after eventlog.Cursor, take func(event.Event)) error

// End calls visit with the fold of a log at its end, at least up to the event with the sequence last. visit must not keep the
// fold, which grows.
func (c *Folds[K, F]) End(key K, last uint64, read Reader, visit func(F, eventlog.Cursor) error) error {
	f := c.get(key)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tip.at.Seq < last {
		err := read(f.tip.at, func(e event.Event) {
			f.tip.take(e)
			f.keep(f.tip, c.marks)
		})
		c.weigh(key, f)
		if err != nil {
			return err
		}
	}
	return visit(f.tip.fold, f.tip.at)
}

// Before returns the fold of a log up to the event with the sequence, and its position. The caller owns it.
func (c *Folds[K, F]) Before(key K, seq uint64, read Reader) (F, eventlog.Cursor, error) {
	f := c.get(key)
	m, found := f.nearest(seq)
	if !found {
		m.fold = c.begin(key)
	}
	if m.at.Seq >= seq {
		return m.fold, m.at, nil
	}
	err := read(m.at, func(e event.Event) {
		if m.take(e); m.at.Seq%markEvery == 0 {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.keep(m, c.marks)
		}
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	c.weigh(key, f)
	return m.fold, m.at, err
}

// get returns the folds of a log.
func (c *Folds[K, F]) get(key K) *folded[F] {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.all.Get(key)
	if !ok {
		f = &folded[F]{tip: mark[F]{fold: c.begin(key)}, every: markEvery}
		c.all.Add(key, f)
		c.trim()
	}
	return f
}

// trim forgets the folds that were used longest ago beyond the bound. The caller has locked.
func (c *Folds[K, F]) trim() {
	for c.used > c.bytes && c.all.Len() > 1 {
		c.all.RemoveOldest()
	}
}

// weigh counts the bytes of folds that have grown. The caller has locked the folds.
func (c *Folds[K, F]) weigh(key K, f *folded[F]) {
	n := f.tip.fold.Size()
	for _, m := range f.marks {
		n += m.fold.Size()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now, _ := c.all.Peek(key); now != f {
		return // they are forgotten
	}
	c.used += n - f.used
	f.used = n
	c.trim()
}

func (m *mark[F]) take(e event.Event) {
	m.fold.Take(e)
	m.at = eventlog.Cursor{Seq: e.Sequence, Stream: e.Stream}
}

// nearest returns a copy of the newest fold up to the event with the sequence.
func (f *folded[F]) nearest(seq uint64) (found mark[F], ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	best := f.tip
	for i := len(f.marks) - 1; i >= 0 && best.at.Seq > seq; i-- {
		best = f.marks[i]
	}
	if best.at.Seq == 0 || best.at.Seq > seq {
		return found, false
	}
	return mark[F]{best.fold.Fork(), best.at}, true
}

// keep keeps a copy of a fold at a position that has a mark. Beyond most of them, every other one goes. The caller has locked.
func (f *folded[F]) keep(m mark[F], most int) {
	if m.at.Seq%f.every != 0 {
		return
	}
	i, known := slices.BinarySearchFunc(f.marks, m.at.Seq, func(m mark[F], seq uint64) int { return int(m.at.Seq) - int(seq) }) //nolint:gosec // a log is shorter
	if known {
		return
	}
	f.marks = slices.Insert(f.marks, i, mark[F]{m.fold.Fork(), m.at})
	if len(f.marks) <= most {
		return
	}
	f.every *= 2
	f.marks = slices.DeleteFunc(f.marks, func(m mark[F]) bool { return m.at.Seq%f.every != 0 })
}
