package assignment

import (
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// requests is what commands have done before, so that those that come again do nothing anew.
type requests struct {
	once    map[string]bool    // ids of all events
	handled map[string]handled // requests of participants that were carried out
}

// handled is the event by which a request of a participant was carried out, with the id of the
// child, the call, the question or the client that the event names.
type handled struct {
	seq  uint64
	name string // id of the event
	kind event.Type
	id   string
}

// by reports whether this very command has carried out the request: it was delivered again, or
// its outcome is requested again.
func (h handled) by(c command.Command) bool {
	return strings.HasPrefix(h.name, c.ID+".") || h.id == derived("call_", c)
}

// note remembers which request an event has carried out.
func (r *requests) note(e event.Event) error {
	if e.Request == "" {
		return nil
	}
	h := handled{seq: e.Sequence, name: e.ID, kind: e.Type}
	switch e.Type {
	case event.TaskMessaged, event.ChildCreated, event.CallStarted:
		var d struct {
			ChildID string `json:"child_id"`
			CallID  string `json:"call_id"`
			From    string `json:"from"`
		}
		if err := e.Decode(&d); err != nil {
			return err
		}
		h.id = d.ChildID + d.CallID + d.From // it has one of them
	default:
	}
	r.handled[e.Request] = h
	return nil
}
