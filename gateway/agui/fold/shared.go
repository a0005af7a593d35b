package fold

import (
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// given reports whether the next frame was made for another viewer, unless it is a boundary.
func (t *Thread) given() bool { return t.shared != nil && len(t.out) < len(t.shared.Frames) }

// unstamped reports whether nothing reads the base of a frame of the kind.
func (t *Thread) unstamped(kind string) bool {
	return t.mute || t.given() && kind != wire.RunStarted && kind != wire.RunFinished
}

// innerOf returns the event that an event of a team's log has inside.
func (t *Thread) innerOf(e event.Event) event.Event {
	if t.shared != nil && t.shared.inner != nil {
		return *t.shared.inner
	}
	inner := event.Unwrap(e)
	if t.sharing != nil {
		t.sharing.inner = &inner
	}
	return inner
}

func (t *Thread) headOf(e event.Event) (h head, ok bool) {
	if t.shared != nil && t.shared.head != nil {
		return *t.shared.head, true
	}
	if eventdata.Decode(e.Data, &h) != nil {
		return head{}, false
	}
	if t.sharing != nil {
		t.sharing.head = &h
	}
	return h, true
}

// dataOf returns the data of an event, which handlers do not change.
func dataOf[T event.Data](t *Thread, e event.Event) (d T, ok bool) {
	if t.shared != nil {
		if d, ok = t.shared.data.(T); ok {
			return d, true
		}
	}
	d, err := eventdata.As[T](e)
	if err == nil && t.sharing != nil {
		t.sharing.data = d
	}
	return d, err == nil
}
