package asp

import (
	"encoding/json"
	"time"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Inbound is what a codec may know about the socket on which a frame arrived.
type Inbound struct {
	Participant command.Participant                            // as registered; Online is false before
	OnlyTask    string                                         // the one task that was handed to the agent here and is not over; empty if none or several
	OnlyCall    string                                         // the one call that the service was handed here and that is not over; empty if none or several
	LastTask    string                                         // the open task that either side mentioned last on this socket; empty if the agent has none
	Placed      func(request string) (task string, known bool) // the task that an earlier request without a task was assigned to; nil = no request was
	Watched     subject.Log                                    // the run that the socket shows beside the client's log; zero if none
	NewID       func() string
	Now         time.Time
}

// Torn is the kept part of a frame beyond the size limit.
type Torn struct {
	Head, Tail  []byte // its first and its last bytes, which do not overlap
	Size, Limit int64  // how many bytes it has, and may have
}

// Order is one thing that a frame asks of the gateway. Exactly one of its kinds is set.
type Order struct {
	RequestID string             // of the frame, to which the answer refers
	Type      string             // of the frame, for Answer
	Words     command.Vocabulary // of the frame, for Answer; empty = it does not say

	Intent   *dialect.Intent      // carry it out in the log of the Task, or of the watched run
	Ask      dialect.Inquiry      // sent to its service, whose reply is the answer
	Register *command.Participant // take or change the participant's place in the directory, then Answer with the participant
	Forward  *Forward             // hand on what a service says about a call
	Frames   [][]byte             // frames to be sent back at once
	Leave    bool                 // the participant says goodbye: it does not keep its tasks. Its socket stays

	Task string // of Intent: the task that it is about, as the participant knows it; empty = the watched run

	Placed *Placement // it names no task; the gateway remembers which one was meant, for a repeat

	Unanswered bool // the participant waits for no answer: that the order fails it is not told
	Heartbeat  bool // of Frames: a sign of life, which does not wait for what was asked before
}

// Placement is the task to which a request was given that names none; empty = to none.
type Placement struct{ Request, Task string }

// Dropped is why a frame has no effect whose sender waits for no answer: the gateway
// counts the frame, and the participant is told nothing. One without which the participant cannot continue
// ends its socket.
type Dropped struct {
	Err  error
	Ends bool
}

// Error implements error.
func (d Dropped) Error() string { return d.Err.Error() }

// Unwrap returns the fault.
func (d Dropped) Unwrap() error { return d.Err }

// Forward is what a service says about a call that it was given.
type Forward struct {
	CallID       string
	Request      string // of the frame: what comes again under it is not handed on again; empty = it is another one each time
	Final        bool
	Result       json.RawMessage         // final
	Failure      *fault.Fault            // final: the service reports an error
	Notification *event.CallNotifiedData // not final
}
