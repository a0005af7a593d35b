package entry

// Ring holds the most recent entries of a log without gaps, bounded by count and bytes. It is not safe for concurrent
// use.
type Ring struct {
	buf   []*Entry // circular, grows up to max
	head  int      // index of the oldest
	n     int
	bytes int // total weight
	max   int
	limit int // bytes
}

const (
	// overhead is the memory of an entry excluding its texts, measured with a frame in one dialect: the entry (320 bytes), the
	// strings that it does not share (100), the headers that arrived with the stored form (130) and the frame's
	// bookkeeping (290).
	overhead = 840
	// slack is the memory of the process for each byte in use: the garbage collector runs when the heap has doubled.
	slack = 2
)

// weight is the memory that an entry costs the process: its stored form, a frame of it (about the same again) and the
// overhead.
func weight(e *Entry) int { return slack * (2*len(e.Raw) + overhead) }

// NewRing returns an empty ring for at most limit entries and limitBytes bytes.
func NewRing(limit, limitBytes int) *Ring { return &Ring{max: limit, limit: limitBytes} }

func (r *Ring) at(i int) *Entry { return r.buf[(r.head+i)%len(r.buf)] }

// First returns the oldest sequence held, 0 if the ring is empty.
func (r *Ring) First() uint64 {
	if r.n == 0 {
		return 0
	}
	return r.at(0).Sequence
}

// Push appends the entry that follows the newest and evicts the oldest beyond the bounds. An entry that does not
// follow empties the ring first.
func (r *Ring) Push(e *Entry) {
	if r.n > 0 && r.at(r.n-1).Sequence+1 != e.Sequence {
		r.Clear()
	}
	if r.n == r.max {
		r.Evict()
	}
	r.grow()
	r.buf[(r.head+r.n)%len(r.buf)] = e
	r.n++
	r.bytes += weight(e)
	r.trim(r.limit)
}

// Extend adds older entries before the oldest as far as they fit and follow. It takes them from the end of older
// backwards.
func (r *Ring) Extend(older []*Entry, next uint64) {
	want := next - 1
	if r.n > 0 {
		want = r.First() - 1
	}
	for i := len(older) - 1; i >= 0 && r.n < r.max; i-- {
		e := older[i]
		if e.Sequence > want {
			continue
		}
		if e.Sequence != want || r.bytes+weight(e) > r.limit {
			return
		}
		r.grow()
		r.head = (r.head - 1 + len(r.buf)) % len(r.buf)
		r.buf[r.head] = e
		r.n++
		r.bytes += weight(e)
		want--
	}
}

// After returns up to limit entries that follow seq, and whether the ring reaches back far enough to have them all.
func (r *Ring) After(seq uint64, limit int) ([]*Entry, bool) {
	if r.n == 0 || r.First() > seq+1 {
		return nil, false
	}
	skip := int(seq + 1 - r.First()) //nolint:gosec // at most n, checked next
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
func (r *Ring) trim(limit int) {
	for r.n > 1 && r.bytes > limit {
		r.Evict()
	}
}

// Evict drops the oldest entry. The ring must not be empty.
func (r *Ring) Evict() {
	r.bytes -= weight(r.at(0))
	r.buf[r.head] = nil
	r.head = (r.head + 1) % len(r.buf)
	r.n--
}

// Clear drops all entries.
func (r *Ring) Clear() {
	r.buf, r.head, r.n, r.bytes = nil, 0, 0, 0
}

// grow makes room for one more entry: most logs are short, so the buffer starts small.
func (r *Ring) grow() {
	if r.n < len(r.buf) {
		return
	}
	bigger := make([]*Entry, min(max(16, 2*len(r.buf)), r.max))
	for i := range r.n {
		bigger[i] = r.at(i)
	}
	r.buf, r.head = bigger, 0
}

// Len returns the number of entries held.
func (r *Ring) Len() int { return r.n }

// Bytes returns the total weight of the entries held.
func (r *Ring) Bytes() int { return r.bytes }
