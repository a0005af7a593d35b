// Package conversation is the pure reducer of the log of a session, or of a member of a team: it
// folds the log into a state, and returns the events that a command calls for.
//
// It has no clock, no randomness and no I/O: ids and times are arguments. The session and pipeline
// services decide with it, and workers learn from it the rest of a job, so that all have the same
// view after a crash.
//
// A step that is restarted after the end of its run begins a new run with the results of the first: an accepted message has
// exactly one terminal event.
//
// The budget of a run is in the log: run.started states it, usage.recorded and tool.called use it up, and the state tells a
// worker to stop or to ask. So it holds over any number of takeovers. Jobs that run in parallel may each finish their
// message beyond the limit.
//
// A stored state has no member for a field that is zero: it loads in a third of the time, and processes of versions with
// and without these members read each other's states.
package conversation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation/retry"
	"github.com/waggle-dev/waggle/services/conversation/usage"
	"github.com/waggle-dev/waggle/services/ledger/decision"
	"github.com/waggle-dev/waggle/services/plan"
)

// State is the fold of the log of a session or of a member of a team. The zero value is a log without events. It keeps the
// newest runs only: see Keep.
type State struct {
	Seq uint64
	Profile

	queue     queue
	jobs      jobs
	calls     calls
	questions questions
	known     receipts // the messages, and ids of events that a command may cause only once
	window    window
	history   []Line // the conversation before the export that this session was restored from
	totals    usage.Totals
	meter     meter
}

// Apply folds the next event of the log into s. It skips unknown types and members; an error
// means that the log has an event that this program never appends.
func (s *State) Apply(e event.Event) error {
	if s.Deleted {
		return fmt.Errorf("session log %s, seq %d: %s follows the deletion", e.Subject, e.Sequence, e.Type)
	}
	s.Seq = e.Sequence
	clock := s.meter.clockOf(e, s.jobs)
	s.meter.tick(e.Time, clock, s.Updated)
	s.Updated, s.meter.clock = e.Time, clock
	apply, ok := folds[e.Type]
	if !ok {
		return nil
	}
	if err := apply(s, e); err != nil {
		return fmt.Errorf("session log %s, seq %d: %w", e.Subject, e.Sequence, err)
	}
	return nil
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
	h := handler{s: s, c: c, now: now, rules: rules.withBudget(c)}
	if s.Deleted {
		return h.gone(), nil
	}
	if !h.sees() {
		f := fault.New(absent(c.Service))
		return decision.Decision{Direct: event.CommandRefusedData{CommandID: c.ID, Code: string(f.Code), Message: f.Message, Field: f.Field}}, nil
	}
	return decide(h)
}

// Due returns the earliest time at which advance may return an event: the expiry of an open
// question, a deadline of a step, or the end of a pause between attempts. It is zero if the state
// waits for commands only. Calling advance earlier has no effect.
func (s *State) Due(now time.Time, rules Rules) time.Time {
	return handler{s: s, now: now, rules: rules}.due()
}

// Store returns the state so that Load gives the same again. The same state gives the same bytes.
func (s *State) Store() ([]byte, error) { return encode(s) }

// Run returns the run with the id, or nil.
func (s *State) Run(id string) *Run { return s.queue.byID[id] }

// Runs returns the runs that it keeps in the order in which their messages were accepted.
func (s *State) Runs() []*Run { return s.queue.order }

// Job returns the job with the id, or nil.
func (s *State) Job(id string) *Job { return s.jobs[id] }

// Call returns the call with the id, or nil.
func (s *State) Call(id string) *Call { return s.calls.byID[id] }

// Active returns the active run, or nil.
func (s *State) Active() *Run { return s.queue.active() }

// Waiting returns the number of queued runs.
func (s *State) Waiting() int { return s.queue.waiting() }

// Idle reports whether the log has neither an active run nor a waiting one.
func (s *State) Idle() bool { return s.Active() == nil && s.Waiting() == 0 }

// InSwarm reports whether an agent of the swarm answers the run.
func (s *State) InSwarm(r *Run) bool { return r.Plan == nil && (s.Swarm() || r.Spec.Agent != "") }

// Stats sums the session up.
func (s *State) Stats(now time.Time) event.Stats {
	st := event.Stats{TotalSteps: s.totals.Steps, CompletionStatus: success, Usage: s.totals.Usage()}
	if !s.Created.IsZero() {
		st.DurationSeconds = int64(max(0, now.Sub(s.Created)) / time.Second)
	}
	st.TotalMessages = s.totals.Messages
	last := s.queue.last()
	switch {
	case last == nil:
	case last.Status == Completed && (last.Outcome == "" || last.Outcome == success):
	case last.Outcome == partialSuccess, last.Plan != nil && last.Plan.count(plan.Done) > 0:
		st.CompletionStatus = "partial"
	default:
		st.CompletionStatus = failure
	}
	return st
}

// Wants reports whether the job that the reference names is still open.
func (s *State) Wants(ref command.JobRef) bool {
	_, ok := s.openJob(ref)
	return ok
}

// openJob returns the job that the reference names, if it is still open.
func (s *State) openJob(ref command.JobRef) (*Job, bool) {
	j, r := s.Job(ref.Job()), s.Run(ref.RunID)
	return j, j != nil && r != nil && r.Status == Running && j.open()
}

// Unclaimed returns the jobs of the active run that no worker has claimed, in the order in which they began.
func (s *State) Unclaimed() []*Job {
	return s.Active().where(func(j *Job) bool { return j.open() && j.Attempt == 0 })
}

// Claimed returns the jobs that a worker has claimed and that are neither suspended nor ended, in
// the order in which they began. A backup may hold the claim without the command; these jobs then
// need a new command.
func (s *State) Claimed() []*Job {
	return s.Active().where(func(j *Job) bool { return j.open() && !j.Paused && j.Attempt > 0 && j.SwarmTask == "" })
}

// Ready returns the suspended jobs whose questions have been answered.
func (s *State) Ready() []*Job {
	return s.Active().where(func(j *Job) bool { return j.open() && j.Paused && s.Next(j.ID).Kind != ActionWait })
}

// Abandoned returns the jobs whose agent of the swarm works on them, or may start to, although the
// run no longer needs the result.
func (s *State) Abandoned() []*Job {
	var out []*Job
	for _, r := range s.queue.order {
		swarm := s.InSwarm(r)
		out = append(out, r.where(func(j *Job) bool {
			if _, said := j.final(); !j.Ended || said || j.Failure != nil {
				return false
			}
			return swarm && r.Status == Cancelled || !swarm && j.SwarmTask != ""
		})...)
	}
	return out
}

// Delegated returns the jobs that agents of the swarm have, have had, or may be given:
// their tasks belong to the log alone.
func (s *State) Delegated() []*Job {
	var out []*Job
	for _, r := range s.queue.order {
		out = append(out, r.where(func(j *Job) bool {
			return j.SwarmTask != "" || r.capability(j) != "" || r.Plan == nil && r.Spec.Agent != ""
		})...)
	}
	return out
}

// Next returns the next action of the job. It depends on the log only, so that a worker that takes over
// continues exactly where the dead one stopped.
func (s *State) Next(jobID string) Action {
	j := s.Job(jobID)
	if j == nil || j.Ended || j.Failure != nil {
		return Action{Kind: ActionNone}
	}
	return pending{s: s, r: j.run, j: j}.next()
}

// Retry returns the pause before a job's failed request is repeated. ok is false if it is not
// repeated, because the time for retries is used up or would be before then. The provider's wish, after, is
// never shortened.
func (s *State) Retry(jobID string, now time.Time, after time.Duration, p retry.MaxWait) (pause time.Duration, ok bool) {
	j := s.Job(jobID)
	if j == nil {
		return 0, false
	}
	pause, ok = p.Before(j.Outage.Tries+1, after, j.ID+j.Asked.String())
	due := now.Add(pause)
	if !ok || due.Sub(earliest(j.Outage.Since, j.Asked)) > p.Job {
		return 0, false
	}
	return pause, !j.run.exhausted(due, j.Asked, p.Run)
}

// Approval returns the question about the call; ok is false if people were not asked.
func (s *State) Approval(callID string) (a Approval, ok bool) { return s.questions.approval(callID) }

// Asks reports whether people have to allow the call. It is decided when the model has asked for the call.
func (s *State) Asks(callID string) bool { return s.calls.must[callID] }

// Handed returns the message that forwards an answer to the agent that has asked. The log of its task accepts the first one, and
// reports it with command.CloseQuestion. ok is false for any other command.
func (s *State) Handed(c command.Command, rules Rules) (m command.TaskMessage, ok bool) {
	return answering{handler{s: s, c: c, rules: rules}}.handed()
}

// Brief returns the input of a worker for the job. It holds the conversation and the calls of
// earlier runs. Each call has exactly one result, because no model accepts other histories.
// Whole earlier runs are dropped, oldest first, until the text fits into limit bytes; the job
// itself is always complete.
func (s *State) Brief(jobID string, limit int) Brief { return transcript{s}.brief(jobID, limit) }

// Snapshot returns the state in a portable form. It keeps the newest conversation within limit
// bytes.
func (s *State) Snapshot(limit int) Snapshot { return transcript{s}.snapshot(limit) }

// Keep sets how many bytes of finished runs the state keeps, all if negative. It comes before the first event.
func (s *State) Keep(bytes int) { s.window.Keep = bytes }

// Thin has the state keep only the newest finished run, and the newest planned one, which people may still change. Workers
// need no more.
func (s *State) Thin() { s.window.thin = true }

// Forgot reports whether the state does not know all calls of the log.
func (s *State) Forgot() bool { return s.window.Lost.Any }

// Thinned returns a thin state that shares nothing with this one and knows all about unfinished jobs. Its cost does not depend
// on the length of the log.
func (s *State) Thinned() (*State, error) {
	c := *s
	c.queue.order, c.queue.byID, c.jobs = slices.Clone(s.queue.order), maps.Clone(s.queue.byID), maps.Clone(s.jobs)
	c.calls = calls{byID: maps.Clone(s.calls.byID), must: maps.Clone(s.calls.must)}
	c.questions = questions{byID: maps.Clone(s.questions.byID), byCall: maps.Clone(s.questions.byCall)}
	c.Thin()
	c.shrink()
	raw, err := c.Store() // the two continue apart: nothing is shared
	if err != nil {
		return nil, err
	}
	thin, err := Load(raw)
	if err != nil {
		return nil, err
	}
	thin.Thin()
	return thin, nil
}

// shrink forgets the oldest finished runs beyond the window. The newest one stays.
func (s *State) shrink() {
	limit := s.window.limit()
	if limit < 0 {
		return
	}
	total, newest, planned := bytesOf(s.history), (*Run)(nil), (*Run)(nil)
	for _, r := range s.queue.order {
		if s.window.thin && r.Plan != nil {
			planned = r
		}
		if r.Status.Terminal() {
			total, newest = total+r.Weight, r
		}
	}
	if total > limit && len(s.history) > 0 {
		total -= bytesOf(s.history)
		s.history, s.window.Lost.Any = nil, true
	}
	s.queue.order = slices.DeleteFunc(s.queue.order, func(r *Run) bool {
		if total <= limit || r == newest || r == planned || !r.Status.Terminal() {
			return false
		}
		total -= r.Weight
		s.forget(r)
		return true
	})
}

// forget removes all of a finished run but what the window remembers.
func (s *State) forget(r *Run) {
	s.window.forget(r)
	delete(s.queue.byID, r.ID)
	s.jobs.forget(r)
	s.calls.forget(r)
	s.questions.forget(r)
	if s.meter.timed == r {
		s.meter.timed = nil
	}
}

func (s *State) init() {
	if s.queue.byID == nil {
		s.queue.byID, s.jobs = map[string]*Run{}, jobs{}
		s.calls = calls{byID: map[string]*Call{}, must: map[string]bool{}}
		s.questions = questions{byID: map[string]*Question{}, byCall: map[string]*Question{}}
	}
}

// runOf returns the run that an event is about.
func (s *State) runOf(id string) (*Run, error) {
	if r := s.queue.byID[id]; r != nil {
		return r, nil
	}
	return nil, s.unknown("run %q was never accepted", id)
}

// planOf returns the plan that an event is about.
func (s *State) planOf(run string) (*Plan, error) {
	r := s.queue.byID[run]
	switch {
	case r != nil && r.Plan != nil:
		return r.Plan, nil
	case r == nil && s.window.Lost.Any:
		return nil, errForgotten
	}
	return nil, fmt.Errorf("run %q has no plan", run)
}

// unknown is the outcome of an event about a part that the state does not have: nothing if the part may be forgotten, as late
// events of a worker that was replaced may come after the end of a run.
func (s *State) unknown(format, id string) error {
	if s.window.Lost.Any {
		return errForgotten
	}
	return fmt.Errorf(format, id)
}

func (s *State) received(_ event.Event, d event.MessageReceivedData) error {
	s.totals.Messages++
	s.Tainted = s.Tainted || d.Tainted
	s.accept(&Run{
		ID: d.RunID, MessageID: d.MessageID, Content: d.Content, Principal: d.Principal,
		Sender: d.Sender, Attachments: d.Attachments, Spec: d.RunSpec, Status: Queued,
	})
	return nil
}

// accept adds a run for a message.
func (s *State) accept(r *Run) {
	s.queue.add(r)
	s.known.add(messageMark(r.MessageID))
}

func (s *State) runStarted(e event.Event, d event.RunStartedData) error {
	if d.Repairs != "" && s.Run(d.RunID) == nil {
		s.accept(s.repair(d))
	}
	r, err := s.runOf(d.RunID)
	if err != nil {
		return err
	}
	r.start(e, d)
	if s.meter.timed = nil; r.Budget.Seconds > 0 {
		s.meter.timed = r
	}
	s.queue.lastExec = d.ExecutionID
	switch {
	case r.Spec.Mode == event.ModeChat:
		s.jobs.begin(&Job{ID: r.ID, RunID: r.ID, ExecutionID: d.ExecutionID, StartedBy: e.ID, Started: e.Time}, r)
	case r.Spec.Mode == event.ModeSteps && d.Repairs == "":
		s.totals.Steps += len(r.Spec.Steps)
	}
	return nil
}

// repair returns the run that starts from the plan and results of another.
func (s *State) repair(d event.RunStartedData) *Run {
	old := s.queue.byID[d.Repairs]
	if old == nil && s.window.Planned != nil && s.window.Planned.ID == d.Repairs {
		old = s.window.Planned
	}
	r := &Run{ID: d.RunID, MessageID: d.MessageID, Content: d.Content, Status: Queued}
	r.Plan = &Plan{Phase: Solving, Question: d.Content, Planned: true}
	if old == nil || old.Plan == nil {
		return r
	}
	r.Principal, r.Spec = old.Principal, old.Spec
	r.Spec.Mode = d.Mode
	r.Plan.Question, r.Plan.Summary, r.Plan.PlanID = old.Plan.Question, old.Plan.Summary, old.Plan.PlanID
	for _, t := range old.Plan.Steps {
		c := *t
		c.Job, c.JobID, c.Retry, c.Counted = nil, "", nil, c.Final()
		r.Plan.Steps = append(r.Plan.Steps, &c)
	}
	return r
}

// deleted forgets everything: no job is left that a worker could have, no question that
// could be answered.
func (s *State) deleted(e event.Event, _ event.SessionDeletedData) error {
	*s = State{Seq: e.Sequence, Profile: Profile{Updated: e.Time, Closed: true, Deleted: true}, window: window{Keep: s.window.Keep, thin: s.window.thin}}
	s.init()
	return nil
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
