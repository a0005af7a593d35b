package event

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// Payload is a member of an event or a command that is either inline or an object.
type Payload struct {
	Data *json.RawMessage
	Ref  **ObjectRef
}

// Large is implemented by pointers to data with members that may be objects.
type Large interface{ Payloads() []Payload }

// large creates the data of each type of event that has such members.
var large = map[Type]func() Large{
	TaskCreated:   func() Large { return new(TaskCreatedData) },
	TaskAssigned:  func() Large { return new(TaskAssignedData) },
	TaskNotified:  func() Large { return new(TaskNotifiedData) },
	TaskMessaged:  func() Large { return new(TaskMessagedData) },
	TaskAsked:     func() Large { return new(TaskAskedData) },
	TaskFinished:  func() Large { return new(TaskFinishedData) },
	ChildFinished: func() Large { return new(ChildFinishedData) },
	CallStarted:   func() Large { return new(CallStartedData) },
	CallFinished:  func() Large { return new(CallFinishedData) },
}

// refMark is what the JSON of data with a reference holds.
var refMark = []byte(`_ref":`)

// Refers returns the data of an event with members that are objects, nil for any other event.
func Refers(e Event) (Large, error) {
	build, ok := large[e.Type]
	if !ok || !bytes.Contains(e.Data, refMark) {
		return nil, nil //nolint:nilnil // Most events have no references.
	}
	data := build()
	if err := e.Decode(data); err != nil {
		return nil, err
	}
	for _, p := range data.Payloads() {
		if *p.Ref != nil {
			return data, nil
		}
	}
	return nil, nil //nolint:nilnil // The mark is part of a client's text.
}

// With returns the event with other data of the same type.
func (e Event) With(data Large) (Event, error) {
	b, err := plainjson.Marshal(data)
	if err != nil {
		return e, fmt.Errorf("encode data of %s: %w", e.Type, err)
	}
	e.Data = b
	return e, nil
}

// Payloads implements Large.
func (d *TaskCreatedData) Payloads() []Payload { return []Payload{{&d.Data, &d.DataRef}} }

// Payloads implements Large.
func (d *TaskAssignedData) Payloads() []Payload { return []Payload{{&d.Data, &d.DataRef}} }

// Payloads implements Large.
func (d *TaskNotifiedData) Payloads() []Payload {
	return []Payload{{&d.Message, &d.MessageRef}, {&d.Data, &d.DataRef}}
}

// Payloads implements Large.
func (d *TaskMessagedData) Payloads() []Payload { return []Payload{{&d.Message, &d.MessageRef}} }

// Payloads implements Large.
func (d *TaskAskedData) Payloads() []Payload { return []Payload{{&d.Message, &d.MessageRef}} }

// Payloads implements Large.
func (d *TaskFinishedData) Payloads() []Payload { return []Payload{{&d.Result, &d.ResultRef}} }

// Payloads implements Large.
func (d *ChildFinishedData) Payloads() []Payload { return []Payload{{&d.Result, &d.ResultRef}} }

// Payloads implements Large.
func (d *CallStartedData) Payloads() []Payload { return []Payload{{&d.Arguments, &d.ArgumentsRef}} }

// Payloads implements Large.
func (d *CallFinishedData) Payloads() []Payload { return []Payload{{&d.Result, &d.ResultRef}} }
