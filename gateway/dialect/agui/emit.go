package agui

import (
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// base returns the members that all events of the run have.
func (t *Thread) base(kind string) wire.Base { return t.baseOf(kind, wire.Origin{}) }

// baseOf is base with more about the origin.
func (t *Thread) baseOf(kind string, o wire.Origin) wire.Base {
	if t.mute {
		return wire.Base{}
	}
	return t.stamped(kind, o)
}

// stamped is baseOf for frames that are kept.
func (t *Thread) stamped(kind string, o wire.Origin) wire.Base {
	b := wire.Base{Type: kind}
	o.Seq, o.Attempt = t.seq, t.attempt
	if !t.at.Time.IsZero() { // the thread has events
		o.Time, b.Timestamp = stamp(t.at.Time), t.at.Time.UnixMilli()
	}
	if t.run != nil {
		o.RunID = t.run.id
	}
	b.Metadata = &wire.Metadata{Waggle: o}
	return b
}

// emit appends a frame of the open stretch.
func (t *Thread) emit(frame any) { t.emitFor(frame, t.Open(), Everywhere, false) }

func (t *Thread) emitFor(frame any, stretch string, shown Shown, ends bool) {
	if t.mute {
		return
	}
	_, own := frame.(wire.Boundary)
	if n := len(t.out); !own && n < len(t.shared) {
		t.out = append(t.out, Frame{Data: t.shared[n].Data, Stretch: stretch, Shown: shown, Ends: ends})
		return
	}
	data, err := plainjson.Marshal(frame)
	if err != nil {
		return // The frames have no values that JSON lacks.
	}
	t.out = append(t.out, Frame{Data: data, Stretch: stretch, Shown: shown, Ends: ends})
}

// custom appends an event that the protocol has no form for.
func (t *Thread) custom(name string, value any) {
	t.emit(wire.CustomEvent{Base: t.base(wire.Custom), Name: name, Value: value})
}

// owner returns the id of the subagent that does a piece of work, as the variant shows it: a frame has no owner that has
// not begun, or has ended.
func (t *Thread) owner(work string) string {
	if !t.variant.subagents || work == "" || t.run == nil {
		return ""
	}
	for _, s := range t.run.subs {
		if s.work == work && !s.suspended {
			return s.id
		}
	}
	return ""
}

// live returns the work of a subagent if it is open.
func (t *Thread) live(sub string) string {
	for _, s := range t.run.subs {
		if s.work == sub {
			return sub
		}
	}
	return ""
}
