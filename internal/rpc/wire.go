package rpc

import (
	"encoding/json"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Headers of a request.
const (
	headerTrace = "traceparent"
	// headerTimeout carries the caller's timeout in milliseconds: a duration, because the clocks of two machines
	// differ.
	headerTimeout = "Waggle-Timeout"
)

// Headers and states of operations. A request to begin is answered with any number of messages with the state "running",
// or "note" for progress, and one with the state "done", which has the outcome.
const (
	headerState  = "Waggle-State"
	stateRunning = "running"
	stateNote    = "note"
	stateDone    = "done"
	// headerNotes marks requests to begin whose caller wants the progress.
	headerNotes = "Waggle-Progress"
)

// headerAgain marks a reply of a leaving replica that did not handle the request: the caller asks another one.
const headerAgain = "Waggle-Ask-Again"

// wireFault is the wire form of a fault. Its cause stays in the process where it happened.
type wireFault struct {
	Code       fault.Code      `json:"code"`
	Message    string          `json:"message"`
	Field      string          `json:"field,omitempty"`
	Ref        string          `json:"ref,omitempty"`
	Constraint string          `json:"constraint,omitempty"`
	Provided   json.RawMessage `json:"provided,omitempty"`
	Details    json.RawMessage `json:"details,omitempty"`
}

// setFault makes m the answer to a failed request, with the headers by which the tools for NATS micro detect an
// error.
func setFault(m *nats.Msg, f *fault.Fault) {
	w := wireFault{Code: f.Code, Message: f.Message, Field: f.Field, Ref: f.Ref, Constraint: f.Constraint}
	if json.Valid(f.Provided) {
		w.Provided = f.Provided
	}
	if json.Valid(f.Details) {
		w.Details = f.Details
	}
	m.Data, _ = json.Marshal(w) //nolint:errchkjson // strings and checked JSON always encode
	m.Header.Set(micro.ErrorHeader, string(f.Code))
	m.Header.Set(micro.ErrorCodeHeader, strconv.Itoa(fault.Lookup(f.Code).Status))
}

// faultOf returns the fault of an answer, or nil.
func faultOf(m *nats.Msg) *fault.Fault {
	if m.Header.Get(micro.ErrorHeader) == "" {
		return nil
	}
	var w wireFault
	if err := json.Unmarshal(m.Data, &w); err != nil {
		return fault.New(fault.Internal).Wrap(err)
	}
	return &fault.Fault{
		Code: w.Code, Message: w.Message, Field: w.Field, Ref: w.Ref, Constraint: w.Constraint, Provided: w.Provided, Details: w.Details,
	}
}
