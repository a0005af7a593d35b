package eventlog

// Bounds of what a tail keeps while it waits for a hole to be filled. A hole is
// filled in milliseconds; what does not fit is read from the stream later.
const (
	maxHeld      = 256
	maxHeldBytes = 1 << 20
)

// splice puts the entries of one log in order, wherever they come from: live or
// history, doubled, late, early. It is not safe for concurrent use.
type splice struct {
	last  Cursor            // the last entry that was let through
	held  map[uint64]*Entry // early entries by sequence, all beyond last.Seq+1
	bytes int               // total len(Raw) of held
	want  Cursor            // the highest position heard of; > last means there is a hole
}

// offer takes an entry and appends those that are now next to out, in order
// without hole or double.
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

// skipTo declares that everything up to the position at has been dealt with or
// does not exist any more. It returns the entries that are next now.
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

// expect notes that the log is known to reach the position.
func (s *splice) expect(at Cursor) {
	if at.Seq > s.want.Seq {
		s.want = at
	}
}

// behind reports whether entries are known to exist beyond the last one.
func (s *splice) behind() bool { return s.want.Seq > s.last.Seq }

// forget drops what was heard of but is not in the stream.
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
