package assignment

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
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

// step decides one verb whose command has been read.
type step[T any] func(*State, command.Command, T, Env) (effect, error)

// verbs holds how each command is decided.
var verbs = map[id.Name]func(*State, command.Command, Env) (effect, error){
	command.CreateTask:  reads((*State).create),
	command.MessageTask: reads((*State).message),
	command.CancelTask:  reads((*State).cancel),
	command.ReportTask:  reads((*State).report),
	command.NotifyTask:  reads((*State).notify),
	command.AskTask:     reads((*State).ask),
	command.FinishTask:  reads((*State).result),
	command.ReleaseTask: reads((*State).release),
	command.SpawnTask:   reads((*State).spawn),
	command.EndChild:    reads((*State).childEnded),
	command.CallTool:    reads((*State).call),
	command.NotifyCall:  reads((*State).callNotified),
	command.EndCall:     reads((*State).callEnded),
	command.CheckTask:   func(s *State, _ command.Command, env Env) (effect, error) { return s.goOn(env) },
}

// reads decodes a command's data before its step. Data that cannot be read are the
// sender's fault, and coming again does not mend them.
func reads[T any](f step[T]) func(*State, command.Command, Env) (effect, error) {
	return func(s *State, c command.Command, env Env) (effect, error) {
		var d T
		if err := c.Decode(&d); err != nil {
			return effect{}, fault.New(fault.InvalidField).Wrap(err)
		}
		return f(s, c, d, env)
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

// sees reports whether the sender of a command sees the task. Services send commands without a principal, or those that follow from
// a command of a person elsewhere.
func (s *State) sees(c command.Command, rules Rules) bool {
	return c.Principal == "" || c.Origin != nil || s.Created.IsZero() || rules.Access.MaySee(c.Tenant, s.Owner(), person(c))
}

// mayAnswer reports whether the sender of a message may answer the agent's question. An answer in the log of the job was decided there.
func (s *State) mayAnswer(c command.Command, rules Rules) bool {
	return c.Principal == "" || c.Origin != nil || rules.Access.MayAnswer(c.Tenant, s.Owner(), "", person(c))
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

func fact(eventID string, d event.Data) (effect, error) {
	return effect{Decision: decision.Decision{Facts: []decision.Fact{{ID: eventID, Data: d}}}, own: true}, nil
}

// goOn decides what follows from the state alone.
func (s *State) goOn(env Env) (effect, error) {
	return effect{Decision: decision.Of(s.advance(env)...)}, nil
}

// refuse tells the sender why the command has no effect. It adds no due events, because after them
// the same command might have an effect.
func (s *State) refuse(c command.Command, f *fault.Fault) (effect, error) {
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

func (s *State) create(c command.Command, d command.NewTask, env Env) (effect, error) {
	eventID := c.ID + ".created"
	switch {
	case s.once[eventID]:
		return s.goOn(env)
	case !s.Created.IsZero():
		return s.refuse(c, fault.Newf(fault.InvalidField, "A task with this id exists already. Use another id.").At("task_id"))
	}
	if d.TaskID == "" {
		d.TaskID = c.Key.String()
	}
	if len(d.Data) == 0 {
		d.Data = json.RawMessage("null")
	}
	queue, timeout := millis(d.QueueMS), millis(d.TimeoutMS)
	if queue == 0 {
		queue = env.Rules.QueueTimeout
	}
	if timeout == 0 {
		timeout = env.Rules.TaskTimeout
	}
	created := event.TaskCreatedData{
		TaskHead: event.TaskHead{TaskID: d.TaskID, RequestID: d.RequestID, ClientID: d.ClientID, ParentID: d.ParentID},
		WantedID: d.AgentID, WantedName: d.AgentName, Capabilities: d.Capabilities, TaskType: d.TaskType, Data: d.Data, DataRef: d.DataRef,
		Caller: d.Caller, AskerID: d.AskerID, Depth: d.Depth, RootID: d.RootID, Chain: d.Chain, QueueMS: queue.Milliseconds(), TimeoutMS: timeout.Milliseconds(),
		Session: d.Session, Kind: string(d.Kind), JobID: d.JobID, RunID: d.RunID, Principal: cmp.Or(c.Principal, d.Owner),
		RetryOf: d.RetryOf,
	}
	created.ExpectedID, created.ExpectedName = expected(created, env.Agents)
	return fact(eventID, created)
}

// foreign reports whether the task belongs to another client. Services send no client id.
func (s *State) foreign(clientID string) bool {
	return s.Created.IsZero() || (clientID != "" && clientID != s.head.ClientID)
}

// message records a message of the client to the agent. It answers the open question, if any.
func (s *State) message(c command.Command, d command.TaskMessage, env Env) (effect, error) {
	eventID := c.ID + ".messaged"
	q := s.question
	if d.Given != nil && !s.gave(c, d) {
		return s.refuse(c, fault.New(fault.Forbidden))
	}
	switch {
	case s.once[eventID]:
		return s.said(c, d, env)
	case s.foreign(d.ClientID):
		return s.refuse(c, Unknown())
	case s.Done():
		return s.refuse(c, fault.New(fault.TaskFinished))
	case s.asking() && !s.mayAnswer(c, env.Rules):
		return s.refuse(c, fault.Newf(fault.Forbidden, "You may not answer the question of this task. Its owner or an operator may."))
	case !q.meant(d):
		return s.refuse(c, fault.Newf(fault.InputNotFound, "The question is not open any more. Nothing was changed."))
	case !s.asking() && q != nil && answers(d):
		return s.tooLate(c, d, q)
	}
	told := event.TaskMessagedData{
		TaskHead: s.head, MessageID: c.ID, MessageType: d.MessageType, Message: d.Message, MessageRef: d.MessageRef, From: d.ClientID,
	}
	if s.asking() {
		told.InputID, told.Given = q.id, d.Given
		if d.ClientID == "" {
			told.By = c.Principal
		}
	}
	return fact(eventID, told)
}

// answers reports whether the message is an answer, and nothing else.
func answers(d command.TaskMessage) bool {
	return d.MessageType == command.TypeInputResponse || d.InputID != "" || d.Asked > 0
}

// meant reports whether the message may be about the newest question: it names that one, or none.
func (q *question) meant(d command.TaskMessage) bool {
	if q == nil {
		return d.InputID == "" && d.Asked == 0
	}
	return (d.InputID == "" || q.id == d.InputID) && (d.Asked == 0 || q.seq == d.Asked)
}

// gave reports whether the person has given this answer, in the log of the job that the task is. A command without a proof
// has passed the check of signatures, which wants one where people sign.
func (s *State) gave(c command.Command, d command.TaskMessage) bool {
	if c.Origin == nil {
		return true
	}
	var a command.AnswerQuestion
	if json.Unmarshal(c.Origin.Data, &a) != nil || !within(s.task.Session, c.Origin.Key) {
		return false
	}
	told, err := a.ToAgent()
	return err == nil && a.InputID == d.Given.InputID && bytes.Equal(event.Canonical(told), event.Canonical(d.Message))
}

// within reports whether the log is the one with the key, or that of a member of the team with the key, at any depth.
func within(log, key string) bool {
	e, err := id.ParseEntity(log)
	for ok := err == nil; ok; e, ok = id.TeamOf(e) {
		if e.String() == key {
			return true
		}
	}
	return false
}

// said decides about a message that was recorded before. It answers a sender that wants it to.
func (s *State) said(c command.Command, d command.TaskMessage, env Env) (effect, error) {
	out, err := s.goOn(env)
	if c.Again != "" {
		out.Direct = event.TaskMessagedData{TaskHead: s.head, MessageID: c.ID, MessageType: d.MessageType, Message: d.Message, MessageRef: d.MessageRef, From: d.ClientID}
	}
	return out, err
}

// tooLate refuses an answer to a question that is closed.
func (s *State) tooLate(c command.Command, d command.TaskMessage, q *question) (effect, error) {
	f := fault.New(fault.InputAnswered)
	if q.answered == nil {
		f = fault.New(fault.InputExpired)
	}
	data := refusal(c, f)
	data.InputID = q.id
	if q.answered != nil {
		data.AnsweredBy, data.Decision = cmp.Or(q.answered.From, q.answered.By), event.DecisionAnswer
		if g := q.answered.Given; g != nil {
			data.AnsweredOn, data.Decision = g.ClientID, g.Decision
		}
	}
	if d.Given != nil {
		data.InputID = d.Given.InputID
	}
	return effect{Decision: decision.Decision{Direct: data}}, nil
}

// cancel ends the task, held or not.
func (s *State) cancel(c command.Command, d command.CancelTaskData, _ Env) (effect, error) {
	eventID := c.ID + ".cancelled"
	switch {
	case s.once[eventID]:
		return effect{Decision: decision.Decision{Direct: s.cancelled(c)}}, nil
	case s.foreign(d.ClientID):
		return s.refuse(c, Unknown())
	case s.Done():
		return s.refuse(c, fault.New(fault.TaskFinished))
	}
	text := "The task was cancelled."
	if d.Reason != "" {
		text = "The task was cancelled: " + d.Reason
	}
	end := s.ending(StatusCancelled, fault.RunCancelled, text)
	return effect{Decision: decision.Decision{Facts: []decision.Fact{{ID: eventID, Data: end}}, Direct: s.cancelled(c)}, own: true}, nil
}

// cancelled tells the sender that its command was carried out.
func (s *State) cancelled(c command.Command) event.NoticeData {
	ok := true
	return event.NoticeData{Level: "info", Code: "ACTION", Message: "Done.", Action: c.Verb.String(), TaskID: s.head.TaskID, OK: &ok}
}

// ending is the end of the task. An empty text is the catalogue's.
func (s *State) ending(status string, code fault.Code, text string) event.TaskFinishedData {
	if text == "" {
		text = fault.Lookup(code).Message
	}
	return event.TaskFinishedData{TaskHead: s.head, Status: status, Code: string(code), Error: text, CreatedAt: s.Created}
}

// open returns how many of the things that the agent has begun are open.
func (s *State) open(ids []string, head func(id string) *event.TaskHead) int {
	n := 0
	for _, each := range slices.Backward(ids) {
		if h := head(each); h != nil && s.current(*h) {
			n++
		}
	}
	return n
}
