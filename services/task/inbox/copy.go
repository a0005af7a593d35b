package inbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/assignment"
)

// copyLimit bounds the data of a copied event, so that it fits into a stored event
// (256 KiB) with its envelope and its origin.
const copyLimit = 250 << 10

// visible reports whether a task's client gets the event. Other events concern the service and
// agents only.
func visible(e event.Event) bool {
	if e.Type == event.TaskReported {
		r, err := event.As[event.TaskReportedData](e)
		return err != nil || r.Status != assignment.Delivered
	}
	return shown[e.Type]
}

var shown = map[event.Type]bool{
	event.TaskCreated: true, event.TaskQueued: true, event.TaskAssigned: true,
	event.TaskNotified: true, event.TaskMessaged: true, event.TaskReleased: true, event.TaskAsked: true, event.TaskAskExpired: true,
	event.TaskFinished: true, event.ChildCreated: true, event.ChildFinished: true,
	event.CallStarted: true, event.CallNotified: true, event.CallFinished: true,
}

// withoutTask are the events that repeat the client's own request. The inbox stores them without
// it.
var withoutTask = map[event.Type]bool{event.TaskCreated: true, event.TaskAssigned: true}

var errNull = errors.New("it is null")

// Copy returns the event of a task's log as a client's log has it: with its origin, and with an id that is the same
// at every attempt. It fails if the event's data is not an object.
func Copy(to subject.Log, e event.Event) (event.Event, error) {
	from, err := subject.ParseName(e.Subject)
	if err != nil {
		return event.Event{}, err
	}
	var members map[string]json.RawMessage
	err = json.Unmarshal(e.Data, &members)
	if err == nil && members == nil {
		err = errNull
	}
	if err != nil {
		return event.Event{}, fmt.Errorf("copy %s seq %d: its data is not an object: %w", e.Subject, e.Sequence, err)
	}
	if withoutTask[e.Type] {
		members["data"] = json.RawMessage("null")
		delete(members, "data_ref")
	}
	shorten(members)
	if members["origin_log"], err = json.Marshal(e.Subject); err != nil {
		return event.Event{}, fmt.Errorf("copy %s seq %d: encode its origin: %w", e.Subject, e.Sequence, err)
	}
	members["origin_seq"] = strconv.AppendUint(nil, e.Sequence, 10)
	c := event.Event{
		SpecVersion: e.SpecVersion, ID: fmt.Sprintf("%s.%d", from.Entity, e.Sequence), Source: e.Source, Type: e.Type,
		Subject: to.Name(), Time: e.Time, TraceParent: e.TraceParent,
	}
	c.Data, err = json.Marshal(members)
	return c, err
}

// shorten leaves out the largest members until the rest fits. A client can request the task to
// get them.
func shorten(members map[string]json.RawMessage) {
	for {
		sum, largest := 0, ""
		for k, v := range members {
			sum += len(k) + len(v)
			if largest == "" || len(v) > len(members[largest]) || len(v) == len(members[largest]) && k < largest {
				largest = k
			}
		}
		if sum <= copyLimit {
			return
		}
		delete(members, largest)
		members["shortened"] = json.RawMessage("true")
	}
}
