package conversation

import (
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

// MaxWaiting is how many messages may wait behind the active run: enough for a person who types
// ahead, and few enough to stop a faulty client early.
const MaxWaiting = 16

// MaxWaitingMember is MaxWaiting for a member of a team. Its messages come from colleagues and from
// the board, which announces each task to its assignee and holds up to a hundred.
const MaxWaitingMember = 256

// execLayout is the time part of an execution id, down to microseconds.
const execLayout = "20060102_150405.000000"

// Rules are the settings that decisions depend on.
type Rules struct {
	TTL            time.Duration // how long a session outlives its last event
	ConfirmPlan    bool          // ask before a plan is carried out, unless session or message say otherwise
	ConfirmTimeout time.Duration // how long a question stays open
	OnBusy         string        // reject, enqueue, interrupt, unless session or message say otherwise
	MaxConcurrent  int           // tasks of a run at once
	TaskTimeout    time.Duration // of one attempt at a task, from its first claim
	Tries          int           // at a plan, a task or an aggregate
	Replans        int           // further attempts after an invalid plan
	Backoff        time.Duration // before the second try; doubled before each further one
	Patience       time.Duration // how long the requests of a run to the model may fail one after the other; 0 = for ever

	Access access.Policy // to sessions and their questions

	// Fits returns why the arguments do not fit the JSON Schema of a tool; nil: they do. Without it, people may not change arguments.
	Fits func(schema, arguments json.RawMessage) *fault.Fault

	Barred *fault.Fault // why the tenant may not use the model that would answer; nil: it may

	Budget  event.Budget            // limits of a run, unless it sets lower ones
	Budgets map[string]event.Budget // the same of tenants that have their own
}

// decide is how a command is decided.
type decide func(*State, command.Command, time.Time, Rules) (decision.Decision, error)

// verbs holds how each command to a session is decided.
var verbs = map[id.Name]decide{
	command.Open:           (*State).open,
	command.SendMessage:    (*State).receive,
	command.Cancel:         (*State).cancel,
	command.Close:          (*State).close,
	command.Delete:         (*State).delete,
	command.SettleJob:      (*State).goOn,
	command.CheckDeadlines: (*State).goOn,
	command.Resume:         (*State).goOn,
	command.AbandonJob:     (*State).workDead,
	command.AssignJob:      (*State).workTaken,
	command.FinishJob:      (*State).workDone,
	command.AskPeople:      (*State).agentAsks,
	command.CloseQuestion:  (*State).closeQuestion,
	command.Expire:         (*State).expire,
	command.Answer:         (*State).respond,
	command.CancelStep:     (*State).cancelTask,
	command.RestartStep:    (*State).restartTask,
	command.CancelPlan:     (*State).cancelPlan,
	command.Replan:         (*State).replan,
}

// Decide returns the remaining effect of the command in this state. now is the time of handling.
// After a decision without facts, another call changes nothing.
func (s *State) Decide(c command.Command, now time.Time, rules Rules) (decision.Decision, error) {
	known := verbs
	if c.Service == command.Member {
		known = memberVerbs
	}
	decide, ok := known[c.Verb]
	if !ok {
		return decision.Decision{}, fault.Newf(fault.UnknownType, "the %s service has no command %q", c.Service, c.Verb)
	}
	if s.Deleted {
		return s.gone(c), nil
	}
	if !s.sees(c, rules) {
		f := fault.New(absent(c.Service))
		return decision.Decision{Direct: event.CommandRefusedData{CommandID: c.ID, Code: string(f.Code), Message: f.Message, Field: f.Field}}, nil
	}
	return decide(s, c, now, rules.withBudget(c))
}

// person is who sends the command.
func person(c command.Command) access.Person {
	return access.Person{Subject: c.Principal, Operator: c.Operator}
}

// sees reports whether the sender of a command to a session sees the session. Services send commands without a principal, or those
// that follow from a command of a person elsewhere, and teams have rules of their own.
func (s *State) sees(c command.Command, rules Rules) bool {
	return c.Principal == "" || c.Origin != nil || c.Service == command.Member || s.Created.IsZero() || rules.Access.MaySee(c.Tenant, s.Owner(), person(c))
}

// gone refuses a command about a deleted session. A second deletion succeeds.
func (s *State) gone(c command.Command) decision.Decision {
	if c.Verb == command.Delete {
		return decision.Decision{}
	}
	f := fault.New(fault.SessionDeleted)
	return decision.Decision{Direct: event.CommandRefusedData{CommandID: c.ID, Code: string(f.Code), Message: f.Message, Field: f.Field}}
}

// goOn decides what follows from the state alone.
func (s *State) goOn(_ command.Command, now time.Time, rules Rules) (decision.Decision, error) {
	return decision.Of(s.advance(now, rules)...), nil
}

// RunID returns the id of the run that answers the message with the given id.
func RunID(messageID string) string {
	sum := sha256.Sum256([]byte(messageID))
	return "run_" + hex.EncodeToString(sum[:10])
}

func (s *State) open(c command.Command, _ time.Time, _ Rules) (decision.Decision, error) {
	if !s.Created.IsZero() {
		return decision.Decision{}, nil
	}
	var d command.OpenSession
	if err := c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	if c.Principal != "" {
		d.Owner = "" // it opens its own
	}
	return decision.Of(decision.Fact{ID: c.ID + ".created", Data: event.SessionCreatedData{
		Dialect: d.Dialect, Principal: c.Principal, Owner: d.Owner, Preferences: d.Preferences,
	}}), nil
}

func (s *State) receive(c command.Command, now time.Time, rules Rules) (decision.Decision, error) {
	var d command.UserMessage
	if err := c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	if s.heard(c.ID) {
		return s.receivedAgain(c, d, now, rules)
	}
	if s.Created.IsZero() {
		return decision.Decision{}, fault.New(absent(c.Service))
	}
	if s.Agent != nil {
		d.RunSpec = event.RunSpec{Budget: d.Budget} // members of teams chat
	}
	if why := s.refusal(d.RunSpec, rules); why != nil {
		return decision.Of(decision.Fact{ID: c.ID + ".refused", Data: event.MessageRefusedData{MessageID: c.ID, Code: string(why.Code), Message: why.Message}}), nil //nolint:nilerr // a refusal is an outcome, not a failure
	}
	if r := s.Active(); r != nil && s.onBusy(d.RunSpec, rules) == event.OnBusyInterrupt {
		return decision.Of(s.stop(c, r, "interrupted", now)...), nil // the message itself is decided about next
	}
	queued := s.Waiting()
	if s.Active() != nil {
		queued++
	}
	got := event.MessageReceivedData{
		MessageID: c.ID, RunID: RunID(c.ID), Content: d.Content, Principal: c.Principal, Queued: queued,
		Sender: d.Sender, Attachments: d.Attachments, RunSpec: d.RunSpec, Tainted: d.Tainted,
	}
	list := []decision.Fact{{ID: c.ID + ".received", Data: got}}
	if queued == 0 {
		list = append(list, s.start(&Run{ID: got.RunID, MessageID: got.MessageID, Content: got.Content, Spec: d.RunSpec}, now, rules))
	}
	return decision.Of(list...), nil
}

// receivedAgain decides about a message that was accepted or refused before. It answers a sender that wants it to, unless the
// reason of an old refusal is forgotten.
func (s *State) receivedAgain(c command.Command, d command.UserMessage, now time.Time, rules Rules) (decision.Decision, error) {
	got, err := s.goOn(c, now, rules)
	switch {
	case c.Again == "":
	case s.known.Has(refusalMark(c.ID)):
		if i := slices.IndexFunc(s.refusals, func(r event.MessageRefusedData) bool { return r.MessageID == c.ID }); i >= 0 {
			got.Direct = event.CommandRefusedData{CommandID: c.ID, Code: s.refusals[i].Code, Message: s.refusals[i].Message}
		}
	default:
		got.Direct = event.MessageReceivedData{
			MessageID: c.ID, RunID: RunID(c.ID), Content: d.Content, Principal: c.Principal, Sender: d.Sender, Attachments: d.Attachments, RunSpec: d.RunSpec,
		}
	}
	return got, err
}

// absent is the fault of a message to what does not exist.
func absent(service id.Name) fault.Code {
	if service == command.Member {
		return fault.AgentNotFound
	}
	return fault.SessionNotFound
}

func (s *State) refusal(spec event.RunSpec, rules Rules) *fault.Fault {
	switch {
	case s.Closed && s.Agent != nil:
		return fault.New(fault.TeamClosed)
	case s.Closed:
		return fault.New(fault.SessionClosed)
	case rules.Barred != nil:
		return rules.Barred
	case spec.Agent != "" && spec.Mode != event.ModeChat:
		return fault.Newf(fault.InvalidField, "An agent of the swarm answers messages of the mode chat only.").At("mode")
	case s.Waiting() >= s.room():
		return fault.New(fault.QueueFull)
	case s.Active() != nil && s.onBusy(spec, rules) == event.OnBusyReject:
		return fault.New(fault.SessionBusy)
	}
	return nil
}

// room is how many messages may wait.
func (s *State) room() int {
	if s.Agent != nil {
		return MaxWaitingMember
	}
	return MaxWaiting
}

// onBusy returns the handling of a message during an active run. Chats always enqueue, because
// people type ahead.
func (s *State) onBusy(spec event.RunSpec, rules Rules) string {
	switch {
	case spec.OnBusy != "":
		return spec.OnBusy
	case spec.Mode == event.ModeChat:
		return event.OnBusyEnqueue
	case s.Preferences.OnBusy != "":
		return s.Preferences.OnBusy
	}
	return rules.OnBusy
}

// next starts the oldest waiting run unless a run is active.
func (s *State) next(now time.Time, rules Rules) []decision.Fact {
	if s.Active() != nil {
		return nil
	}
	for _, r := range s.order {
		if r.Status == Queued {
			return []decision.Fact{s.start(r, now, rules)}
		}
	}
	return nil
}

func (s *State) start(r *Run, now time.Time, rules Rules) decision.Fact {
	d := event.RunStartedData{
		RunID: r.ID, ExecutionID: s.executionID(now), MessageID: r.MessageID, Content: r.Content, Mode: r.Spec.Mode, Budget: rules.budget(r.Spec),
	}
	if d.Mode != event.ModeChat {
		d.MaxConcurrent = rules.concurrent(r.Spec)
	}
	return decision.Fact{ID: r.ID + ".started", Data: d}
}

// executionID is the time in the form exec_YYYYMMDD_HHMMSS_ffffff, moved on by
// microseconds until it is later than the session's last one: the form sorts by time.
func (s *State) executionID(now time.Time) string {
	for at := now.UTC(); ; at = at.Add(time.Microsecond) {
		id := []byte("exec_" + at.Format(execLayout))
		id[len(id)-7] = '_'
		if string(id) > s.lastExec {
			return string(id)
		}
		if last, err := time.Parse(execLayout, dotted(s.lastExec)); err == nil && last.After(at) {
			at = last
		}
	}
}

func dotted(exec string) string {
	b := []byte(exec[len("exec_"):])
	b[len(b)-7] = '.'
	return string(b)
}

func (s *State) cancel(c command.Command, now time.Time, rules Rules) (decision.Decision, error) {
	var d command.CancelRun
	if err := c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	if d.All && d.RunID == "" {
		if list := s.stopAll(c, orElse(d.Reason, "user_request"), now); len(list) > 0 {
			return decision.Of(list...), nil
		}
		return s.sumUp(c, d, now, rules)
	}
	r := s.Active()
	if d.RunID != "" {
		r = s.Run(d.RunID)
	}
	if r != nil && !r.Status.Terminal() && !s.cancelled(c) {
		return decision.Of(s.stop(c, r, orElse(d.Reason, "user_request"), now)...), nil
	}
	return s.sumUp(c, d, now, rules)
}

// sumUp appends the totals of a paused session. Then the session continues.
func (s *State) sumUp(c command.Command, d command.CancelRun, now time.Time, rules Rules) (decision.Decision, error) {
	if paused := c.ID + ".paused"; d.Pause && s.Agent == nil && !s.Created.IsZero() && !s.Closed && !s.known.Has(paused) {
		return decision.Of(decision.Fact{ID: paused, Data: event.SessionPausedData{Reason: "user_request", Stats: s.Stats(now)}}), nil
	}
	return s.goOn(c, now, rules)
}

// cancelled reports whether the command has had its effect: it stops one run, not
// the one after it as well.
func (s *State) cancelled(c command.Command) bool {
	return s.known.Has(c.ID+".cancelled") || s.known.Has(c.ID+".paused")
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func (s *State) close(c command.Command, now time.Time, _ Rules) (decision.Decision, error) {
	if s.Created.IsZero() || s.Closed {
		return decision.Decision{}, nil
	}
	var d command.CloseSession
	if err := c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	return decision.Of(s.ending(c, orElse(d.Reason, "user_request"), now)...), nil
}

// ending cancels every open run, then closes the session or the agent.
func (s *State) ending(c command.Command, reason string, now time.Time) []decision.Fact {
	var list []decision.Fact
	for _, r := range s.order {
		if !r.Status.Terminal() {
			list = append(list, s.stop(c, r, reason, now)...)
		}
	}
	if s.Agent != nil {
		return append(list, decision.Fact{ID: c.ID + ".closed", Data: event.MemberClosedData{Reason: reason}})
	}
	stats := s.Stats(now)
	return append(list, decision.Fact{ID: c.ID + ".closed", Data: event.SessionClosedData{Reason: reason, Stats: &stats}})
}

// delete stops every open run and deletes the session.
func (s *State) delete(c command.Command, now time.Time, _ Rules) (decision.Decision, error) {
	if s.Seq == 0 {
		return decision.Decision{}, nil
	}
	var list []decision.Fact
	for _, r := range s.order {
		if !r.Status.Terminal() {
			list = append(list, s.stop(c, r, deletion, now)...)
		}
	}
	return decision.Of(append(list, decision.Fact{ID: c.ID + ".deleted", Data: event.SessionDeletedData{Reason: "user_request"}})...), nil
}

// deletion is why the runs of a deleted session end.
const deletion = "session_deleted"

// workDead fails a job whose work item became a dead letter, or which no worker can do.
func (s *State) workDead(c command.Command, now time.Time, rules Rules) (decision.Decision, error) {
	var d command.AbandonedJob
	if err := c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	w, ok := s.job(d.JobRef)
	if !ok {
		return s.goOn(c, now, rules)
	}
	r := s.Run(d.RunID)
	entry := fault.Lookup(fault.Code(orElse(d.Code, string(fault.AttemptsOver))))
	if r.Pipeline != nil {
		return decision.Of(s.failed(w, entry, now, 0)), nil
	}
	return decision.Of(append(stops(w), decision.Fact{ID: c.ID + ".failed", Data: event.RunFailedData{
		RunID: r.ID, ExecutionID: r.ExecutionID, Attempt: w.Attempt,
		Code: string(entry.Code), Message: entry.Message, Retryable: entry.Retryable,
	}})...), nil
}

// expire closes a session without an active run in which nothing has happened for the TTL.
func (s *State) expire(c command.Command, now time.Time, rules Rules) (decision.Decision, error) {
	if s.Created.IsZero() || s.Closed || s.Active() != nil || now.Before(s.Updated.Add(rules.TTL)) {
		return decision.Decision{}, nil
	}
	return decision.Of(s.ending(c, "timeout", now)...), nil
}
