// Package command defines the envelope of every command on the bus.
package command

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Services that accept commands.
var (
	Session  = id.MustName("session")  // lifecycle: open, close, expire, acknowledge
	Pipeline = id.MustName("pipeline") // runs: all work that a message causes
	Worker   = id.MustName("worker")   // jobs
	Member   = id.MustName("member")   // runs of the members of teams: as Pipeline, for logs of agents
	Team     = id.MustName("team")     // teams: their members, messages and boards
)

// Verbs of the session service. Commands of one session are handled in order.
var (
	Open   = id.MustName("open")   // data: OpenSession
	Close  = id.MustName("close")  // data: CloseSession
	Expire = id.MustName("expire") // no data; the session's TTL timer fired
	Ack    = id.MustName("ack")    // data: AckEvents
	Delete = id.MustName("delete") // no data; stop all, remove all

	EraseTask = id.MustName("erase_task") // no data; key: a task of the swarm, whose log ends with its tombstone
)

// Verbs of the pipeline service. Commands of one session are handled in order.
var (
	SendMessage    = id.MustName("send_message")    // data: UserMessage
	Cancel         = id.MustName("cancel")          // data: CancelRun
	Answer         = id.MustName("answer")          // data: AnswerQuestion
	CancelStep     = id.MustName("cancel_step")     // data: StepRef
	RestartStep    = id.MustName("restart_step")    // data: StepRef
	CancelPlan     = id.MustName("cancel_plan")     // data: CancelRun
	Replan         = id.MustName("replan")          // data: ReplanRun
	SettleJob      = id.MustName("settle_job")      // data: JobRef; the worker has ended its work
	AbandonJob     = id.MustName("abandon_job")     // data: AbandonedJob; its command was given up
	AssignJob      = id.MustName("assign_job")      // data: AssignedJob; an agent of the swarm has the job
	FinishJob      = id.MustName("finish_job")      // data: FinishedJob; that agent has ended it
	AskPeople      = id.MustName("ask_people")      // data: JobQuestion; that agent asks a question
	CloseQuestion  = id.MustName("close_question")  // data: ClosedQuestion; the question has its answer, or takes none any more
	CheckDeadlines = id.MustName("check_deadlines") // no data; a deadline of the session has passed
	Resume         = id.MustName("resume")          // no data; continue a restored session
)

// Verbs of the agent service. Any worker may take any of them.
var (
	DoJob = id.MustName("do_job") // data: JobOrder
)

// PingWorker is a request to the agent service, without data either way: a reply means that a worker runs, a missing
// responder that none does.
var PingWorker = id.MustName("ping")

// TryModel asks a worker to try one ability of its model: ModelTrial -> api.ModelTrial.
var TryModel = id.MustName("try_model")

// ModelTrial names a trial of a model by its number, from 0.
type ModelTrial struct {
	Trial int `json:"trial"`
}

// Verbs of the session service for request and reply.
var (
	Attach = id.MustName("attach") // AttachRequest -> AttachReply
	Export = id.MustName("export") // ExportRequest -> event.StateExportedData
	Import = id.MustName("import") // ImportRequest -> ImportReply

	ShowSession = id.MustName("show") // SessionRequest -> api.SessionPart
)

// Command asks a service to change one entity.
//
// ID is the dedupe id: the bus drops a repeat within two minutes, and the service answers a later one from its log.
// It is unique within (Service, Tenant, Key). A sender that needs a new answer to each repeat sends a command with
// another ID and the same Request, or with the same ID and another Again.
type Command struct {
	ID          string          `json:"id"`
	Request     string          `json:"request,omitempty"` // the sender's id for it: a repeat, under another ID, has the same; empty = never repeated
	Again       string          `json:"again,omitempty"`   // differs in each repeat with the same ID whose sender wants an answer: the bus does not drop it
	Service     id.Name         `json:"service"`
	Verb        id.Name         `json:"verb"`
	Tenant      id.Tenant       `json:"tenant"`
	Key         id.Entity       `json:"key"`
	Principal   string          `json:"principal,omitempty"` // the requesting principal; empty for services
	Operator    bool            `json:"operator,omitempty"`  // the principal has the role operator
	Source      string          `json:"source,omitempty"`    // the sending process
	Time        time.Time       `json:"time"`
	Data        json.RawMessage `json:"data,omitempty"`
	TraceParent string          `json:"traceparent,omitempty"`
	Member      string          `json:"member,omitempty"`   // of the team that the command is sent to: a name, a path of names or an agent's id; empty = the team itself
	ReplyTo     string          `json:"reply_to,omitempty"` // the connection for direct messages: subject.ReplyTo; empty = not wanted

	Signature string       `json:"signature,omitempty"` // of the gateway that sent it for the principal
	Origin    *event.Proof `json:"origin,omitempty"`    // of the signed command that a service derived this one from
}

// Address returns the subject parts of the command.
func (c Command) Address() subject.Command {
	return subject.Command{Service: c.Service, Tenant: c.Tenant, Key: c.Key, Verb: c.Verb}
}

// SourceRestore is the source of commands that make a service read a log again after a restore from a backup:
// commands that were sent before may be lost.
const SourceRestore = "waggle/restore"

// DedupeID returns the stream-global Nats-Msg-Id: all subjects of a stream share dedupe ids, so the id must contain
// the addressee.
func (c Command) DedupeID() string {
	dedupe := c.Service.String() + "." + c.Tenant.String() + "." + c.Key.String() + ":" + c.ID
	if c.Again != "" {
		dedupe += "~" + c.Again
	}
	return dedupe
}

// Decode unmarshals the command's data into v, naming the command on failure.
func (c Command) Decode(v any) error {
	if err := json.Unmarshal(c.Data, v); err != nil {
		return fmt.Errorf("decode data of command %s.%s: %w", c.Service, c.Verb, err)
	}
	return nil
}

// OpenSession creates a session, or does nothing if it exists.
type OpenSession struct {
	Dialect string `json:"dialect"`
	Owner   string `json:"owner,omitempty"` // of a session that a service opens for another principal
	event.Preferences
}

// UserMessage is a message to a session, an agent or a team. Command.ID is its id.
type UserMessage struct {
	Content string        `json:"content"`
	Sender  *event.Sender `json:"sender,omitempty"`  // absent: a user
	Tainted bool          `json:"tainted,omitempty"` // its sender has read untrusted output
	event.Attachments
	event.RunSpec
}

// CancelRun stops a run. An empty RunID means the active run, with All also the waiting ones.
type CancelRun struct {
	RunID  string `json:"run_id,omitempty"`
	All    bool   `json:"all,omitempty"`
	Reason string `json:"reason,omitempty"`
	Pause  bool   `json:"pause,omitempty"` // summarise the session afterwards: session.paused, even without an active run
}

// AnswerQuestion answers a question, which it names by its id or, for scope tool, by its call. Digest, if set, must
// equal that of the question. Tasks replaces the list, Modified changes members of tasks with the same id; both are
// as the client wrote them.
type AnswerQuestion struct {
	InputID  string          `json:"input_id,omitempty"`
	CallID   string          `json:"call_id,omitempty"`
	Digest   string          `json:"digest,omitempty"`
	Approved bool            `json:"approved"`
	Feedback string          `json:"feedback,omitempty"`
	Steps    json.RawMessage `json:"steps,omitempty"`
	Modified json.RawMessage `json:"modified,omitempty"`
	// Arguments is what an approved call of scope tool runs with instead of what was shown. Digest is that of the changed
	// call then, and Shown that of the call that the person was shown; a gateway fills in both.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Shown     string          `json:"shown,omitempty"`
	ClientID  string          `json:"client_id,omitempty"`
	Segment   string          `json:"segment,omitempty"` // the client's id for what the run does next; kept with the answer
	Result    *string         `json:"result,omitempty"`  // of scope client_tool, with Approved; without it, Feedback is the tool's error
	Files     []event.File    `json:"files,omitempty"`   // with Result
	Message   json.RawMessage `json:"message,omitempty"` // of scope agent: what the agent is told; absent: approved and the feedback
}

// ToAgent returns what the answer tells an agent that has asked. Protocols that know approvals and texts only have no message.
func (a AnswerQuestion) ToAgent() (json.RawMessage, error) {
	if len(a.Message) > 0 {
		return a.Message, nil
	}
	return json.Marshal(struct {
		Approved bool   `json:"approved"`
		Text     string `json:"text,omitempty"`
	}{a.Approved, a.Feedback})
}

// StepRef names a step of the active run, or of the last one.
type StepRef struct {
	RunID       string `json:"run_id,omitempty"` // the run has to be this one; absent = any
	StepID      string `json:"step_id"`
	Reason      string `json:"reason,omitempty"`
	MaxAttempts int    `json:"max_attempts,omitempty"` // restart: absent = the server's limit
}

// ReplanRun asks for another plan. An empty question means the previous one.
type ReplanRun struct {
	Question string `json:"question,omitempty"`
	event.RunSpec
}

// AckEvents records the client's position in a log. The highest one counts.
type AckEvents struct {
	ClientID string `json:"client_id"`
	Seq      uint64 `json:"seq"`
}

// JobRef names a job of a run. The command's key is the log's entity.
type JobRef struct {
	Kind  id.Kind `json:"kind,omitempty"` // of the log; absent = session
	RunID string  `json:"run_id"`
	JobID string  `json:"job_id,omitempty"` // absent: the run itself, which is a chat run
}

// Manager returns the service that manages the log of the job.
func (w JobRef) Manager() id.Name {
	if w.Kind == id.KindMember {
		return Member
	}
	return Pipeline
}

// LogKind returns the kind of the log of the job.
func (w JobRef) LogKind() id.Kind {
	if w.Kind == "" {
		return id.KindSession
	}
	return w.Kind
}

// Job returns the id of the job.
func (w JobRef) Job() string { return event.Part{JobID: w.JobID}.Job(w.RunID) }

// CloseSession ends a session.
type CloseSession struct {
	Reason string `json:"reason,omitempty"`
}

// JobOrder gives a job to a worker.
type JobOrder struct {
	JobRef
	At string `json:"at,omitempty"` // a position of the log that has the job, "<seq>.<stream>"; absent: the worker asks the bus
}

// AssignedJob reports that an agent of the swarm has accepted a job, as a task.
type AssignedJob struct {
	JobRef
	TaskID  string `json:"task_id"`
	Agent   string `json:"agent"`
	Attempt int    `json:"attempt"` // at the swarm's task
}

// FinishedJob reports the outcome of a job that an agent of the swarm had.
type FinishedJob struct {
	JobRef
	TaskID    string `json:"task_id"`
	Agent     string `json:"agent,omitempty"`
	Output    string `json:"output,omitempty"` // text for people; other results as JSON
	Failed    bool   `json:"failed,omitempty"`
	Code      string `json:"code,omitempty"`
	Message   string `json:"message,omitempty"`
	Retryable bool   `json:"retryable,omitempty"`
}

// JobQuestion is a question of an agent of the swarm that has a job.
type JobQuestion struct {
	JobRef
	InputID        string `json:"input_id"` // of the question in the log of the job
	Attempt        int    `json:"attempt"`  // at the swarm's task
	Summary        string `json:"summary"`  // for people
	TimeoutSeconds int    `json:"timeout_seconds"`
	event.AgentQuestion
}

// ClosedQuestion reports what became of a question of an agent that has a job.
type ClosedQuestion struct {
	JobRef
	InputID   string          `json:"input_id"`
	CommandID string          `json:"command_id,omitempty"` // of the answer; absent: it got none
	Withdrawn bool            `json:"withdrawn,omitempty"`  // without an answer: the agent does not wait any more
	By        string          `json:"by,omitempty"`
	Decision  string          `json:"decision,omitempty"`
	Feedback  string          `json:"feedback,omitempty"`
	ClientID  string          `json:"client_id,omitempty"`
	Segment   string          `json:"segment,omitempty"`
	Message   json.RawMessage `json:"message,omitempty"` // to the agent, unless it is too large
}

// AbandonedJob reports that the bus gave up delivering a job.
type AbandonedJob struct {
	JobRef
	Reason string `json:"reason"`
	Code   string `json:"code,omitempty"` // from the error catalogue; absent = ATTEMPTS_EXHAUSTED
}
