// Package narrate tells events in plain English, independent of any protocol. A dialect
// writes the frames that its protocol has a form for, and shows every other event in the
// neutral form of this package. A new event type gets one entry in the table here, and
// every dialect shows it.
package narrate

import (
	"encoding/json"
	"errors"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Kind is the role of an event in a conversation.
type Kind int

// The kinds.
const (
	Silent   Kind = iota // says nothing
	Note                 // informs people
	Message              // is the text of a person or of another agent
	Question             // asks people for a decision
	Answer               // is the final answer of a run or a task
	Failure              // reports an error
)

// Narration is the neutral form of an event.
type Narration struct {
	Kind      Kind
	Text      string
	Lead      string // introduces Text, with its separator: "The child task c1 has failed: "
	Code      string // of a Failure; never empty there
	Run       string // the run, or the task of the swarm, that the event belongs to, if it names one
	Execution string
	ID        string // of the message that came, or that was lost
	By        string // the agent of the swarm that the event is about: its name, or its id without one
	Closes    string // the question that is over: it has an answer, or its time is up
	Detail    bool   // changes nothing that people wait for; protocols of few words leave it out
	Ends      bool   // of a Failure: the run or the task ends with it
	Ask       Ask    // of a Question
}

// Ask is the part of a question that clients need for its answer.
type Ask struct {
	ID, Scope      string
	Tool           string          // the tool that needs an approval
	Arguments      json.RawMessage // of the tool
	Options        json.RawMessage // the agent's, absent if any answer will do
	TimeoutSeconds int             // 0 = the question stays open
}

// ScopeTask is the scope of the question of an agent of the swarm.
const ScopeTask = "task"

// ErrUnreadable reports an event that wraps another one which cannot be read.
var ErrUnreadable = errors.New("the relayed event cannot be read")

// Whole returns the text with its lead and, of a question about a tool, its arguments.
func (n Narration) Whole() string {
	text := n.Lead + n.Text
	if n.Ask.Tool != "" && len(n.Ask.Arguments) > 0 {
		text += "\nArguments: " + shortened(n.Ask.Arguments)
	}
	return text
}

// Fault fills in the gaps of an error that an event reports: the code is at least
// fault.Internal, and the text at least that of the catalogue.
func Fault(code, message string) (filledCode, text string) {
	code = First(code, string(fault.Internal))
	return code, First(message, fault.Lookup(fault.Code(code)).Message)
}

// First returns the first text that is not empty.
func First(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}

// seconds converts milliseconds into seconds, rounded up.
func seconds(ms int64) int {
	const perSecond = 1000
	return int((ms + perSecond - 1) / perSecond)
}

// failed returns a failure.
func failed(lead, code, message string) Narration {
	code, message = Fault(code, message)
	return Narration{Kind: Failure, Lead: lead, Code: code, Text: message}
}

// end is failed for what a run or a task ends with.
func end(lead, code, message string) Narration {
	n := failed(lead, code, message)
	n.Ends = true
	return n
}

// of adds the run.
func (n Narration) of(run, execution string) Narration {
	n.Run, n.Execution = run, execution
	return n
}

// entry is one row of the table: a function or the reason why the type says nothing.
type entry struct {
	tell   func(event.Event) (Narration, error)
	silent string
}

// with decodes the event's data for f.
func with[T event.Data](f func(T) Narration) entry {
	return entry{tell: func(e event.Event) (Narration, error) {
		d, err := eventdata.As[T](e)
		if err != nil {
			return Narration{}, err
		}
		return f(d), nil
	}}
}

// detail is with for events that change nothing that people wait for.
func detail[T event.Data](text func(T) string) entry {
	return with(func(d T) Narration { return Narration{Kind: Note, Text: text(d), Detail: true} })
}

// note is with for events that people should know.
func note[T event.Data](text func(T) string) entry {
	return with(func(d T) Narration { return Narration{Kind: Note, Text: text(d)} })
}

// same is note for events whose text does not depend on their data.
func same(text string) entry {
	return entry{tell: func(event.Event) (Narration, error) { return Narration{Kind: Note, Text: text}, nil }}
}

// minor is same for details.
func minor(text string) entry {
	return entry{tell: func(event.Event) (Narration, error) { return Narration{Kind: Note, Text: text, Detail: true}, nil }}
}

// inTask adds to the row of an event of a task of the swarm which task it is about, and which agent.
func inTask(row entry) entry {
	tell := row.tell
	row.tell = func(e event.Event) (Narration, error) {
		n, err := tell(e)
		if err != nil {
			return n, err
		}
		var head event.TaskHead
		if err := eventdata.Into(e, &head); err != nil {
			return Narration{}, err
		}
		n.Run, n.By = head.TaskID, First(head.AgentName, head.AgentID)
		if n.Kind == Question && n.By != "" {
			n.Lead = n.By + " asks: "
		}
		return n, nil
	}
	return row
}

func silent(reason string) entry { return entry{silent: reason} }
