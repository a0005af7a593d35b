package eventlog

// Bounds of the entries that a tail holds until a gap is filled. That takes milliseconds; entries beyond the bounds
// are read from the stream later.
const (
	maxHeld      = 256
	maxHeldBytes = 1 << 20
)

// splice orders the entries of one log, whatever their source and order: live or history, duplicated, late, early. It
// is not safe for concurrent use.
type splice struct {
	last  Cursor            // the last entry that was released
	held  map[uint64]*Entry // early entries by sequence, all beyond last.Seq+1
	bytes int               // total len(Raw) of held
	want  Cursor            // the highest known position; beyond last if entries are missing
}

// offer takes an entry and appends the entries that are next now to out, in order, without gaps or duplicates.
func (s *splice) offer(out []*Entry, e *Entry) []*Entry {
	s.expect(e.Cursor())
	switch {
	case e.Sequence <= s.last.Seq:
		return out
	case e.Sequence > s.last.Seq+1:
		s.hold(e)
		return out
	}
	s.last = e.Cursor()
	return s.release(append(out, e))
}

// skipTo declares that everything up to the position at has been released or does not exist any more. It returns the
// entries that are next now.
func (s *splice) skipTo(at Cursor) []*Entry {
	if at.Seq <= s.last.Seq {
		return nil
	}
	s.last = at
	for seq, e := range s.held {
		if seq <= at.Seq {
			s.drop(e)
		}
	}
	return s.release(nil)
}

// expect records that the log reaches the position.
func (s *splice) expect(at Cursor) {
	if at.Seq > s.want.Seq {
		s.want = at
	}
}

// behind reports whether known entries are missing after the last one.
func (s *splice) behind() bool { return s.want.Seq > s.last.Seq }

// forget drops announced entries that the stream does not have.
func (s *splice) forget() {
	s.held, s.bytes, s.want = nil, 0, s.last
}

func (s *splice) hold(e *Entry) {
	if _, ok := s.held[e.Sequence]; ok || len(s.held) >= maxHeld || s.bytes+len(e.Raw) > maxHeldBytes {
		return
	}
	if s.held == nil {
		s.held = make(map[uint64]*Entry)
	}
	s.held[e.Sequence] = e
	s.bytes += len(e.Raw)
}

func (s *splice) drop(e *Entry) {
	delete(s.held, e.Sequence)
	s.bytes -= len(e.Raw)
}

// release appends the held entries that follow the last one.
func (s *splice) release(out []*Entry) []*Entry {
	for len(s.held) > 0 {
		e, ok := s.held[s.last.Seq+1]
		if !ok {
			break
		}
		s.drop(e)
		s.last = e.Cursor()
		out = append(out, e)
	}
	return out
}
