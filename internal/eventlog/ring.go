package eventlog

// ring holds the most recent entries of a log without gaps, bounded by count and bytes. It is not safe for concurrent
// use.
type ring struct {
	buf   []*Entry // circular, grows up to max
	head  int      // index of the oldest
	n     int
	bytes int // total weight
	max   int
	limit int // bytes
}

// entryWeight is the memory of an entry: its stored form, the decoded data (about the same again) and the struct
// itself.
func entryWeight(e *Entry) int { return 2*len(e.Raw) + 256 }

func newRing(limit, limitBytes int) *ring { return &ring{max: limit, limit: limitBytes} }

func (r *ring) at(i int) *Entry { return r.buf[(r.head+i)%len(r.buf)] }

// first returns the oldest sequence held, 0 if the ring is empty.
func (r *ring) first() uint64 {
	if r.n == 0 {
		return 0
	}
	return r.at(0).Sequence
}

// push appends the entry that follows the newest and evicts the oldest beyond the bounds. An entry that does not
// follow empties the ring first.
func (r *ring) push(e *Entry) {
	if r.n > 0 && r.at(r.n-1).Sequence+1 != e.Sequence {
		r.clear()
	}
	if r.n == r.max {
		r.evict()
	}
	r.grow()
	r.buf[(r.head+r.n)%len(r.buf)] = e
	r.n++
	r.bytes += entryWeight(e)
	r.trim(r.limit)
}

// extend adds older entries before the oldest as far as they fit and follow. It takes them from the end of older
// backwards.
func (r *ring) extend(older []*Entry, next uint64) {
	want := next - 1
	if r.n > 0 {
		want = r.first() - 1
	}
	for i := len(older) - 1; i >= 0 && r.n < r.max; i-- {
		e := older[i]
		if e.Sequence > want {
			continue
		}
		if e.Sequence != want || r.bytes+entryWeight(e) > r.limit {
			return
		}
		r.grow()
		r.head = (r.head - 1 + len(r.buf)) % len(r.buf)
		r.buf[r.head] = e
		r.n++
		r.bytes += entryWeight(e)
		want--
	}
}

// after returns up to limit entries that follow seq, and whether the ring reaches back far enough to have them all.
func (r *ring) after(seq uint64, limit int) ([]*Entry, bool) {
	if r.n == 0 || r.first() > seq+1 {
		return nil, false
	}
	skip := int(seq + 1 - r.first()) //nolint:gosec // at most n, checked next
	if skip >= r.n {
		return nil, true
	}
	out := make([]*Entry, min(limit, r.n-skip))
	for i := range out {
		out[i] = r.at(skip + i)
	}
	return out, true
}

// trim evicts until the weight is within limit; the newest entry stays.
func (r *ring) trim(limit int) {
	for r.n > 1 && r.bytes > limit {
		r.evict()
	}
}

func (r *ring) evict() {
	r.bytes -= entryWeight(r.at(0))
	r.buf[r.head] = nil
	r.head = (r.head + 1) % len(r.buf)
	r.n--
}

func (r *ring) clear() {
	r.buf, r.head, r.n, r.bytes = nil, 0, 0, 0
}

// grow makes room for one more entry: most logs are short, so the buffer starts small.
func (r *ring) grow() {
	if r.n < len(r.buf) {
		return
	}
	bigger := make([]*Entry, min(max(16, 2*len(r.buf)), r.max))
	for i := range r.n {
		bigger[i] = r.at(i)
	}
	r.buf, r.head = bigger, 0
}
