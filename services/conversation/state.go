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

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation/usage"
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

// Approval returns the question about the call; ok is false if people were not asked.
func (s *State) Approval(callID string) (a Approval, ok bool) { return s.questions.approval(callID) }

// Asks reports whether people have to allow the call. It is decided when the model has asked for the call.
func (s *State) Asks(callID string) bool { return s.calls.must[callID] }

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

func (s *State) init() {
	if s.queue.byID == nil {
		s.queue.byID, s.jobs = map[string]*Run{}, jobs{}
		s.calls = calls{byID: map[string]*Call{}, must: map[string]bool{}}
		s.questions = questions{byID: map[string]*Question{}, byCall: map[string]*Question{}}
	}
}

// deleted forgets everything: no job is left that a worker could have, no question that
// could be answered.
func (s *State) deleted(e event.Event, _ event.SessionDeletedData) error {
	*s = State{Seq: e.Sequence, Profile: Profile{Updated: e.Time, Closed: true, Deleted: true}, window: window{Keep: s.window.Keep, thin: s.window.thin}}
	s.init()
	return nil
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
	s.known.Add(messageMark(r.MessageID))
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

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
