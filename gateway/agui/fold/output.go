package fold

import (
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// Shared is an event as one thread has shown it. Other threads of the same variant that have the same beginning neither decode
// nor encode it again. It does not change, and is safe for concurrent use.
type Shared struct {
	Frames []Frame

	inner *event.Event // of a team's event
	head  *head
	data  any // nil: it was not decoded
}

// head is what events of runs have in common.
type head struct {
	RunID   string `json:"run_id"`
	Attempt int    `json:"attempt"`
}

// output is the frames of the event that is being folded: none, those that are made here, or those of another viewer.
type output struct {
	mute    bool    // no frames are wanted
	shared  *Shared // the event of another viewer; nil = it is decoded and encoded here
	sharing *Shared // the event for other viewers; nil = it is not shown by others
	frames  []Frame
}

// add appends a frame.
func (o *output) add(frame any, stretch string, shown Shown, ends bool) {
	if o.mute {
		return
	}
	_, own := frame.(wire.Boundary)
	if !own && o.given() {
		o.frames = append(o.frames, Frame{Data: o.shared.Frames[len(o.frames)].Data, Stretch: stretch, Shown: shown, Ends: ends})
		return
	}
	data, err := plainjson.Marshal(frame)
	if err != nil {
		return // The frames have no values that JSON lacks.
	}
	o.frames = append(o.frames, Frame{Data: data, Stretch: stretch, Shown: shown, Ends: ends, Own: own})
}

// take returns the frames, and begins anew.
func (o *output) take() []Frame {
	out := o.frames
	o.frames = nil
	return out
}

// given reports whether the next frame was made for another viewer, unless it is a boundary.
func (o *output) given() bool { return o.shared != nil && len(o.frames) < len(o.shared.Frames) }

// unstamped reports whether nothing reads the base of a frame of the kind.
func (o *output) unstamped(kind string) bool {
	return o.mute || o.given() && kind != wire.RunStarted && kind != wire.RunFinished
}

// innerOf returns the event that an event of a team's log has inside.
func (o *output) innerOf(e event.Event) event.Event {
	if o.shared != nil && o.shared.inner != nil {
		return *o.shared.inner
	}
	inner := event.Unwrap(e)
	if o.sharing != nil {
		o.sharing.inner = &inner
	}
	return inner
}

func (o *output) headOf(e event.Event) (h head, ok bool) {
	if o.shared != nil && o.shared.head != nil {
		return *o.shared.head, true
	}
	if eventdata.Decode(e.Data, &h) != nil {
		return head{}, false
	}
	if o.sharing != nil {
		o.sharing.head = &h
	}
	return h, true
}

// dataOf returns the data of an event, which handlers do not change.
func dataOf[T event.Data](o *output, e event.Event) (d T, ok bool) {
	if o.shared != nil {
		if d, ok = o.shared.data.(T); ok {
			return d, true
		}
	}
	d, err := eventdata.As[T](e)
	if err == nil && o.sharing != nil {
		o.sharing.data = d
	}
	return d, err == nil
}
