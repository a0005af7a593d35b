package command

import "github.com/waggle-dev/waggle/proto-schemas/event"

// Payloads implements event.Large.
func (d *NewTask) Payloads() []event.Payload {
	return []event.Payload{{Data: &d.Data, Ref: &d.DataRef}}
}

// Payloads implements event.Large.
func (d *SpawnChild) Payloads() []event.Payload {
	return []event.Payload{{Data: &d.Data, Ref: &d.DataRef}}
}

// Payloads implements event.Large.
func (d *TaskMessage) Payloads() []event.Payload {
	return []event.Payload{{Data: &d.Message, Ref: &d.MessageRef}}
}

// Payloads implements event.Large.
func (d *TaskNotification) Payloads() []event.Payload {
	return []event.Payload{{Data: &d.Message, Ref: &d.MessageRef}, {Data: &d.Data, Ref: &d.DataRef}}
}

// Payloads implements event.Large.
func (d *TaskQuestion) Payloads() []event.Payload {
	return []event.Payload{{Data: &d.Message, Ref: &d.MessageRef}}
}

// Payloads implements event.Large.
func (d *TaskResult) Payloads() []event.Payload {
	return []event.Payload{{Data: &d.Result, Ref: &d.ResultRef}}
}

// Payloads implements event.Large.
func (d *ToolRequest) Payloads() []event.Payload {
	return []event.Payload{{Data: &d.Arguments, Ref: &d.ArgumentsRef}}
}

// Payloads implements event.Large.
func (v *TaskView) Payloads() []event.Payload {
	return []event.Payload{{Data: &v.Result, Ref: &v.ResultRef}}
}
