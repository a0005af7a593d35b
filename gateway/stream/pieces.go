package stream

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

const (
	// pieceWait is the length of the stretches of time whose deltas make one piece: a text
	// that comes four times a second reads as if it were being written.
	pieceWait = 250 * time.Millisecond
	// maxPiece bounds the text of a piece in bytes, as eventlog.Merge does.
	maxPiece = 32 << 10
)

// sentenceEnd are the characters that end a sentence, closers what may follow them.
const (
	sentenceEnd = ".!?…。！？"
	closers     = " \t\"'”’)]»」』"
)

func endsSentence(text string) bool {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(text, closers))
	return strings.HasSuffix(text, "\n") || strings.ContainsRune(sentenceEnd, last)
}

// pieces puts consecutive deltas of one text together. A piece ends with a sentence, with
// the stretch of pieceWait that the time of its first delta lies in, and before anything
// else that is shown. So the pieces of a log are the same whenever and however it is read,
// but that a reader of the newest events is shown one in two parts if the rest of it is
// announced later than maxWait allows. The pieces after it are the same again.
type pieces struct {
	gathers func(event.MessageDeltaData) bool // nil: none

	open  []*eventlog.Entry // the piece that has been begun
	of    delta
	bytes int
	upTo  eventlog.Cursor // the last entry taken, shown or not
	round int             // counts the pieces that were begun
	timer *time.Timer
}

// delta is a part of a text.
type delta struct {
	gathers bool       // it is to be put together with others
	of      event.Type // of a message's text or of reasoning
	bytes   int
	ends    bool                   // with a sentence
	head    event.MessageDeltaData // all but the text
}

// Keys of what entries remember: a delta of a codec, and the piece of the deltas from a
// sequence to the entry.
type (
	deltaKey string
	pieceKey uint64
)

// flush ends the piece that has been begun and returns it: one entry, unless its deltas
// cannot be merged. All who show the same deltas share it.
func (p *pieces) flush() []*eventlog.Entry {
	run := p.open
	p.open = nil
	if p.timer != nil {
		p.timer.Stop()
	}
	if len(run) < 2 {
		return run
	}
	merged, _ := run[len(run)-1].Memo(pieceKey(run[0].From), func() any { return eventlog.Merge(run) }).([]*eventlog.Entry)
	return merged
}

// delta returns the part of a text that the entry is, zero if it is to be shown as it is.
func (p *pieces) delta(e *eventlog.Entry, codec string) delta {
	if p.gathers == nil || e.Type != event.MessageDelta && e.Type != event.ReasoningDelta {
		return delta{}
	}
	d, _ := e.Memo(deltaKey(codec), func() any {
		data, err := event.As[event.MessageDeltaData](e.Event) // reasoning has the same members, but for Begins
		if err != nil || !p.gathers(data) {
			return delta{}
		}
		d := delta{gathers: true, of: e.Type, bytes: len(data.Text), ends: endsSentence(data.Text)}
		data.Text = ""
		d.head = data
		return d
	}).(delta)
	return d
}

// next takes the next entry and returns the entries that are to be shown because of it,
// pieces among them.
func (p *pieces) next(e *eventlog.Entry, d delta, visible bool) (ready []*eventlog.Entry) {
	switch {
	case !d.gathers && !visible: // it may come between deltas
	case !d.gathers:
		ready = append(p.flush(), e)
	default:
		if !p.joins(e, d) {
			ready = p.flush()
		}
		if len(p.open) == 0 {
			p.of, p.bytes = d, 0
			p.round++
		}
		p.open, p.bytes = append(p.open, e), p.bytes+d.bytes
		if d.ends {
			ready = append(ready, p.flush()...)
		}
	}
	p.upTo = e.Cursor()
	return ready
}

func (p *pieces) joins(e *eventlog.Entry, d delta) bool {
	return len(p.open) > 0 && d.of == p.of.of && d.head == p.of.head && p.bytes+d.bytes <= maxPiece && stretch(e).Equal(stretch(p.open[0]))
}

// stretch returns the beginning of the stretch of time that a delta belongs to. Stretches do not depend on where a piece
// begins: so a viewer who resumes in the middle of one, or was shown one in two parts, has the same pieces as all others after it.
func stretch(e *eventlog.Entry) time.Time { return e.Time.Truncate(pieceWait) }

// maxWait returns for how long the piece that has been begun waits for what may still belong to it: to the end of its stretch,
// and as long again for deltas that were stored in time and are announced late.
func (p *pieces) maxWait() time.Duration {
	first := p.open[0]
	return stretch(first).Add(2 * pieceWait).Sub(first.Time)
}

// gather takes an entry and adds to the queue the pieces, and the entry, that are due because of it. The caller has locked.
func (s *Stream) gather(e *eventlog.Entry, q *queue) {
	p := s.pieces
	before, round := p.upTo, p.round
	d := p.delta(e, s.Codec.Name())
	var own []*transport.Message
	if !d.gathers {
		own = s.project(e)
	}
	ready := p.next(e, d, d.gathers || len(own) > 0)
	for _, r := range ready {
		if r != e || d.gathers {
			q.add(s.at.Seq, s.project(r)...)
			s.at = r.Cursor()
		}
	}
	if len(ready) > 0 && s.at.Seq < before.Seq {
		s.at = before
	}
	q.add(s.at.Seq, own...)
	if len(p.open) == 0 {
		s.at = e.Cursor()
	}
	if len(p.open) > 0 && p.round != round {
		now := p.round
		p.timer = time.AfterFunc(p.maxWait(), func() { s.overdue(now) })
	}
}

// overdue shows a piece that has waited long enough for more of its text.
func (s *Stream) overdue(round int) {
	s.mu.Lock()
	defer s.unlock()
	if !s.over && s.pieces.round == round {
		s.settle()
	}
}

// settle shows the piece that has been begun, so that all that was taken has been shown.
// The caller has locked.
func (s *Stream) settle() {
	if s.pieces == nil || len(s.pieces.open) == 0 {
		return
	}
	for _, e := range s.pieces.flush() {
		s.put(s.project(e)...)
		s.at = e.Cursor()
	}
	s.at = s.pieces.upTo
}

// reached returns the sequence of the last entry that was taken, shown or not. The caller
// has locked.
func (s *Stream) reached() uint64 {
	if s.pieces != nil && len(s.pieces.open) > 0 {
		return s.pieces.upTo.Seq
	}
	return s.at.Seq
}

// together returns entries as they are shown at once: with deltas put together, and
// without those that are not shown. The caller has locked.
func (s *Stream) together(entries []*eventlog.Entry) (out []*eventlog.Entry) {
	if s.pieces == nil {
		return entries
	}
	p := pieces{gathers: s.pieces.gathers}
	for _, e := range entries {
		d := p.delta(e, s.Codec.Name())
		out = append(out, p.next(e, d, d.gathers || len(s.project(e)) > 0)...)
	}
	return append(out, p.flush()...)
}
