package entry

import "math"

// Bounds of the entries that a tail holds until a gap is filled. That takes milliseconds; entries beyond the bounds
// are read from the stream later.
const (
	maxHeld      = 256
	maxHeldBytes = 1 << 20
)

// Splice orders the entries of one log, whatever their source and order: live or history, duplicated, late, early. It
// is not safe for concurrent use.
type Splice struct {
	Last  Cursor            // the last entry that was released
	held  map[uint64]*Entry // early entries by sequence, all beyond last.Seq+1
	bytes int               // total len(Raw) of held
	Want  Cursor            // the highest known position; beyond last if entries are missing
}

// Offer takes an entry and appends the entries that are next now to out, in order, without gaps or duplicates.
func (s *Splice) Offer(out []*Entry, e *Entry) []*Entry {
	s.Expect(e.Cursor())
	switch {
	case e.Sequence <= s.Last.Seq:
		return out
	case e.Sequence > s.Last.Seq+1:
		s.hold(e)
		return out
	}
	s.Last = e.Cursor()
	return s.Release(append(out, e))
}

// SkipTo declares that everything up to the position at has been released or does not exist any more. It returns the
// entries that are next now.
func (s *Splice) SkipTo(at Cursor) []*Entry {
	if at.Seq <= s.Last.Seq {
		return nil
	}
	s.Last = at
	for seq, e := range s.held {
		if seq <= at.Seq {
			s.drop(e)
		}
	}
	return s.Release(nil)
}

// Expect records that the log reaches the position.
func (s *Splice) Expect(at Cursor) {
	if at.Seq > s.Want.Seq {
		s.Want = at
	}
}

// Behind reports whether known entries are missing after the last one.
func (s *Splice) Behind() bool { return s.Want.Seq > s.Last.Seq }

// Missing returns the number of known entries that are missing before the first that is held.
func (s *Splice) Missing() int {
	next := s.Want.Seq + 1
	for seq := range s.held {
		next = min(next, seq)
	}
	return int(min(next-s.Last.Seq-1, math.MaxInt32))
}

// Full reports whether an entry that is early would not be held.
func (s *Splice) Full() bool { return len(s.held) >= maxHeld || s.bytes >= maxHeldBytes }

// Forget drops announced entries that the stream does not have.
func (s *Splice) Forget() {
	s.held, s.bytes, s.Want = nil, 0, s.Last
}

func (s *Splice) hold(e *Entry) {
	if _, ok := s.held[e.Sequence]; ok || len(s.held) >= maxHeld || s.bytes+len(e.Raw) > maxHeldBytes {
		return
	}
	if s.held == nil {
		s.held = make(map[uint64]*Entry)
	}
	s.held[e.Sequence] = e
	s.bytes += len(e.Raw)
}

func (s *Splice) drop(e *Entry) {
	delete(s.held, e.Sequence)
	s.bytes -= len(e.Raw)
}

// Release appends the held entries that follow the last one.
func (s *Splice) Release(out []*Entry) []*Entry {
	for len(s.held) > 0 {
		e, ok := s.held[s.Last.Seq+1]
		if !ok {
			break
		}
		s.drop(e)
		s.Last = e.Cursor()
		out = append(out, e)
	}
	return out
}
