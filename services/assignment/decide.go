package assignment

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// MaxOpen bounds the open calls, and the open children, of a task: more than an agent can use the
// results of, and few enough to stop a faulty agent early.
const MaxOpen = 32

// MaxNotes is the number of notifications that are recorded of one call: one per second for a
// quarter of an hour. Further ones of the same call are dropped.
const MaxNotes = 1000

// Rules are the settings that decisions depend on. Begin with DefaultRules; the zero value is not
// useful.
type Rules struct {
	QueueTimeout time.Duration // how long a task waits for an agent, unless it says otherwise
	TaskTimeout  time.Duration // how long a task may take in all, unless it says otherwise; 0 = as long as it does
	AskTimeout   time.Duration // how long a question to the client is open, unless it says otherwise
	Lease        time.Duration // after so long a silence it is looked whether the agent is still there
	Pause        time.Duration // how long an agent that lost a task is not given the same one again, unless it connects anew
	Silence      time.Duration // how long an agent that is back on another connection may say nothing of a task before it is given it again
	Tries        int           // how many agents may have the task, one after the other
	MaxDepth     int           // how deep children may be nested
	Access       access.Policy // to tasks and their questions
}

// DefaultRules are the protocol's promises. The pause is as long as the directory takes to notice a
// lost agent.
var DefaultRules = Rules{
	// Bounds a task whose agent reconnected under its id without the task's state.
	TaskTimeout:  time.Hour,
	QueueTimeout: 30 * time.Second, AskTimeout: 30 * time.Second, Lease: 45 * time.Second, Pause: 5 * time.Second,
	// An agent that works on reports progress every few seconds, if at all, and a client
	// waits for one that does not: the result of a lost process never comes.
	Silence: 5 * time.Second,
	Tries:   3, MaxDepth: 16,
}

// Env holds the inputs of a decision besides the log and the command.
type Env struct {
	Now    time.Time
	Agents Agents // all that are known in the tenant
	Tool   Tool   // the registry's entry of the tool that command.CallTool names
	Rules  Rules

	Refused *fault.Fault // why the child that command.SpawnTask asks for may not begin: the quota of children; nil = it may
}

// Tool is the directory's entry of a tool.
type Tool struct {
	ServerName string
	Idempotent bool
}

// effect is the decision of one step.
type effect struct {
	decision.Decision
	own bool // the first fact is the command's own, and does not follow from the state
}

// verbs holds how each command is decided: by one of the types that divide the commands among them. None of them changes the state.
var verbs = map[id.Name]func(*State, command.Command, Env) (effect, error){
	command.CreateTask:  reads(giving.create),
	command.MessageTask: reads(giving.message),
	command.CancelTask:  reads(giving.cancel),
	command.ReportTask:  reads(working.report),
	command.NotifyTask:  reads(working.notify),
	command.AskTask:     reads(working.ask),
	command.FinishTask:  reads(working.result),
	command.ReleaseTask: reads(working.release),
	command.SpawnTask:   reads(spawning.spawn),
	command.EndChild:    reads(spawning.childEnded),
	command.CallTool:    reads(calling.call),
	command.NotifyCall:  reads(calling.callNotified),
	command.EndCall:     reads(calling.callEnded),
	command.CheckTask:   func(s *State, _ command.Command, env Env) (effect, error) { return s.goOn(env) },
}

// reads decodes a command's data before its step. Data that cannot be read are the
// sender's fault, and coming again does not mend them.
func reads[K ~struct{ *State }, T any](f func(K, command.Command, T, Env) (effect, error)) func(*State, command.Command, Env) (effect, error) {
	return func(s *State, c command.Command, env Env) (effect, error) {
		var d T
		if err := c.Decode(&d); err != nil {
			return effect{}, fault.New(fault.InvalidField).Wrap(err)
		}
		return f(K{s}, c, d, env)
	}
}

// ofPeople are the commands about a task that need no agent. Those of agents count if the agent has the task, also if it is of another owner.
var ofPeople = map[id.Name]bool{command.MessageTask: true, command.CancelTask: true}

// Unknown is the fault of a task that does not exist.
func Unknown() *fault.Fault {
	return fault.Newf(fault.TaskNotFound, "This task does not exist. Check its id.")
}

// person is who sends the command.
func person(c command.Command) access.Person {
	return access.Person{Subject: c.Principal, Operator: c.Operator}
}

// Decide returns the remaining effect of the command in this state. After a decision without
// facts, another call changes nothing.
func (s *State) Decide(c command.Command, env Env) (decision.Decision, error) {
	decide, ok := verbs[c.Verb]
	if !ok {
		return decision.Decision{}, fault.Newf(fault.UnknownType, "tasks have no command %q", c.Verb)
	}
	if s.Deleted || ofPeople[c.Verb] && !s.sees(c, env.Rules) {
		return decision.Decision{Direct: refusal(c, Unknown())}, nil
	}
	if again, ok := s.repeated(c); ok {
		return again, nil
	}
	d, err := decide(s, c, env)
	if d.own {
		d.Request = s.requestOf(c)
	}
	return d.Decision, err
}

// sees reports whether the sender of a command sees the task. Services send commands without a principal, or those that follow from
// a command of a person elsewhere.
func (s *State) sees(c command.Command, rules Rules) bool {
	return c.Principal == "" || c.Origin != nil || s.Created.IsZero() || rules.Access.MaySee(c.Tenant, s.Owner(), person(c))
}

// mayAnswer reports whether the sender of a message may answer the agent's question. An answer in the log of the job was decided there.
func (s *State) mayAnswer(c command.Command, rules Rules) bool {
	return c.Principal == "" || c.Origin != nil || rules.Access.MayAnswer(c.Tenant, s.Owner(), "", person(c))
}

// requestOf returns the name under which a repeat of the command is recognized, empty if
// it cannot be repeated. An agent that gets the task again may number its requests from
// the beginning, so its requests are known within their attempt.
func (s *State) requestOf(c command.Command) string {
	if c.Request == "" || lasting[c.Verb] {
		return c.Request
	}
	return fmt.Sprintf("%s/%d", c.Request, s.head.Attempt)
}

// repeated answers a request that an earlier command carried out, from the log. Work in progress
// gets no answer yet: its end answers both requests. repeated adds no other event, because a later
// attempt of the request would carry another id.
func (s *State) repeated(c command.Command) (d decision.Decision, known bool) {
	h, known := s.handled[s.requestOf(c)]
	if !known || h.by(c) {
		return decision.Decision{}, false
	}
	switch h.kind {
	case event.TaskFinished:
		if c.Verb == command.CancelTask {
			d.Direct = s.cancelled(c)
		}
	case event.TaskMessaged:
		if h.id != "" { // of a client, and of no viewer
			d.Again = []uint64{h.seq}
		}
	case event.TaskAsked:
		d.Again = told(s.closings[h.seq])
	case event.ChildCreated:
		d.Again = s.childAgain(h.id)
	case event.CallStarted:
		if call := s.calls[h.id]; call != nil {
			d.Again = told(call.ended)
		}
	default: // The event that followed has no answer.
	}
	return d, true
}

// lasting are the requests that are the same in every attempt: those of clients.
var lasting = map[id.Name]bool{command.MessageTask: true, command.CancelTask: true}

// told returns the event as a list, empty for none.
func told(seq uint64) []uint64 {
	if seq == 0 {
		return nil
	}
	return []uint64{seq}
}

func fact(eventID string, d event.Data) (effect, error) {
	return effect{Decision: decision.Decision{Facts: []decision.Fact{{ID: eventID, Data: d}}}, own: true}, nil
}

// goOn decides what follows from the state alone.
func (s *State) goOn(env Env) (effect, error) {
	return effect{Decision: decision.Of(s.advance(env)...)}, nil
}

// refuse tells the sender why the command has no effect. It adds no due events, because after them
// the same command might have an effect.
func refuse(c command.Command, f *fault.Fault) (effect, error) {
	return effect{Decision: decision.Decision{Direct: refusal(c, f)}}, nil
}

func refusal(c command.Command, f *fault.Fault) event.CommandRefusedData {
	return event.CommandRefusedData{CommandID: c.ID, Code: string(f.Code), Message: f.Message, Field: f.Field}
}

// derived returns an id that is the same for the same command.
func derived(prefix string, c command.Command) string {
	sum := sha256.Sum256([]byte(c.Key.String() + "/" + c.ID))
	return prefix + hex.EncodeToString(sum[:10])
}

// fence says why an agent has no say in the task, nil if it has.
func (s *State) fence(agentID string) *fault.Fault {
	switch {
	case s.Created.IsZero():
		return Unknown()
	case s.Done() && agentID == s.head.AgentID:
		return fault.New(fault.TaskFinished)
	case s.holder == "" || agentID != s.holder:
		return fault.New(fault.TaskNotOwned)
	}
	return nil
}

// trails reports whether the agent ended the task by a status. Agents send a status and a result,
// so the result after the status is accepted.
func (s *State) trails(agentID string) bool {
	return s.Done() && agentID == s.head.AgentID && strings.HasSuffix(s.endID, byReport)
}

// ending is the end of the task. An empty text is the catalogue's.
func (s *State) ending(status string, code fault.Code, text string) event.TaskFinishedData {
	if text == "" {
		text = fault.Lookup(code).Message
	}
	return event.TaskFinishedData{TaskHead: s.head, Status: status, Code: string(code), Error: text, CreatedAt: s.Created}
}

// cancelled tells the sender that its command was carried out.
func (s *State) cancelled(c command.Command) event.NoticeData {
	ok := true
	return event.NoticeData{Level: "info", Code: "ACTION", Message: "Done.", Action: c.Verb.String(), TaskID: s.head.TaskID, OK: &ok}
}

// openOf returns how many of the things that agents have begun are open, and of the attempt that is current.
func openOf(ids []string, head func(id string) *event.TaskHead, current func(event.TaskHead) bool) int {
	n := 0
	for _, each := range slices.Backward(ids) {
		if h := head(each); h != nil && current(*h) {
			n++
		}
	}
	return n
}
