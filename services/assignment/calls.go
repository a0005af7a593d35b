package assignment

import "github.com/waggle-dev/waggle/proto-schemas/event"

// callList is the tool calls of the task.
type callList struct {
	calls   map[string]*call
	callIDs []string // as started
}

// call is a tool call of the task. Intent is kept until it has its outcome.
type call struct {
	intent *event.CallStartedData
	told   int    // notifications
	ended  uint64 // sequence of the outcome
}

func (cl *callList) callHead(callID string) *event.TaskHead {
	if intent := cl.calls[callID].intent; intent != nil {
		return &intent.TaskHead
	}
	return nil
}

func (cl *callList) foldCallNotified(_ event.Event, d event.CallNotifiedData) {
	if c := cl.calls[d.CallID]; c != nil {
		c.told++
	}
}

func (cl *callList) foldCallFinished(e event.Event, d event.CallFinishedData) {
	if c := cl.calls[d.CallID]; c != nil {
		c.intent, c.ended = nil, e.Sequence
	}
}
