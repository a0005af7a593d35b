package fold

import "github.com/waggle-dev/waggle/proto-schemas/event"

// handlers fold the types that the projection knows. It passes over all others.
var handlers = map[event.Type]func(*Thread, event.Event){
	event.SessionCreated:  with(sessionCreated),
	event.SessionClosed:   with(sessionClosed),
	event.MessageReceived: with(messageReceived),
	event.MessageRefused:  with(messageRefused),
	event.RunStarted:      with(runStarted),

	event.RunCompleted: inRun(runCompleted),
	event.RunFailed:    inRun(runFailed),
	event.RunCancelled: func(t *Thread, e event.Event) { notBegun(t, e); inRun(runCancelled)(t, e) },

	event.MessageStarted:   inRun(messageStarted),
	event.MessageDelta:     inRun(messageDelta),
	event.MessageCompleted: inRun(messageCompleted),
	event.MessageDiscarded: inRun(messageDiscarded),

	event.ReasoningDelta:     inRun(reasoningDelta),
	event.ReasoningCompleted: inRun(reasoningCompleted),

	event.ToolCalled:    inRun(toolCalled),
	event.ToolCompleted: inRun(toolCompleted),
	event.ToolFailed:    inRun(toolFailed),
	event.ToolUnknown:   inRun(toolUnknown),

	event.PlanStarted:        inRun(planStarted),
	event.PlanCompleted:      inRun(planCompleted),
	event.PlanInvalid:        inRun(planInvalid),
	event.PlanCancelled:      inRun(planCancelled),
	event.StepStarted:        inRun(stepStarted),
	event.StepCompleted:      inRun(stepCompleted),
	event.StepFailed:         inRun(stepFailed),
	event.StepCancelled:      inRun(stepCancelled),
	event.StepRestarted:      inRun(stepRestarted),
	event.AggregateStarted:   inRun(aggregateStarted),
	event.AggregateCompleted: inRun(aggregateCompleted),

	event.JobStarted:   inRun(jobStarted),
	event.JobFailed:    inRun(jobFailed),
	event.JobSuspended: inRun(jobSuspended),

	event.InputRequested: inRun(inputRequested),
	event.InputAnswered:  inRun(inputAnswered),
	event.InputExpired:   inRun(inputExpired),

	event.UsageRecorded:     inRun(usageRecorded),
	event.RetryScheduled:    inRun(retryScheduled),
	event.RequestFailed:     inRun(requestFailed),
	event.TodosUpdated:      inRun(todosUpdated),
	event.ArtifactPersisted: inRun(artifactPersisted),
	event.ArtifactUpdated:   inRun(artifactUpdated),
	event.Notice:            with(noticed),
	event.Error:             with(errorReported),
}

// Take takes the next event of the log.
func (t *Thread) Take(e event.Event) {
	t.out.mute = true
	t.next(e)
	t.out.mute = false
}

// Next takes the next event of the log and returns its frames.
func (t *Thread) Next(e event.Event) []Frame {
	t.next(e)
	return t.out.take()
}

// Share is Next for an event that other threads show as well.
func (t *Thread) Share(e event.Event) *Shared {
	s := &Shared{}
	t.out.sharing = s
	defer func() { t.out.sharing = nil }()
	s.Frames = t.Next(e)
	return s
}

// Like is Next for an event that another thread has shared. Only boundaries are encoded again: they name the thread as the viewer does.
func (t *Thread) Like(e event.Event, s *Shared) []Frame {
	t.out.shared = s
	defer func() { t.out.shared = nil }()
	return t.Next(e)
}

// next folds the event. One whose data cannot be read changes nothing.
func (t *Thread) next(e event.Event) {
	t.at, t.seq, t.attempt, t.of = e, e.Sequence, 0, ""
	if t.first == 0 {
		t.first = e.Sequence
	}
	if t.team != nil {
		t.inTeam(e)
	} else if handle := handlers[e.Type]; handle != nil {
		handle(t, e)
	}
	if t.run != nil {
		t.run.rest(t)
	}
}

// teamHandlers fold the events of a team's log, without what is around those of members.
var teamHandlers = map[event.Type]func(*Thread, event.Event){
	event.TeamCreated:        with(teamCreated),
	event.TeamClosed:         with(teamClosed),
	event.TeamStatus:         with(teamStatus),
	event.TeamMessage:        with(teamMessage),
	event.TeamMessageDropped: with(teamMessageDropped),
	event.TeamStopped:        with(teamStopped),
	event.BoardCreated:       with(boardCreated),
	event.BoardUpdated:       with(boardUpdated),

	event.MessageReceived: with(memberReceived),
	event.MessageRefused:  with(memberRefused),
	event.RunStarted:      with(memberStarted),
	event.RunCompleted:    with(memberCompleted),
	event.RunFailed:       with(memberFailed),
	event.RunCancelled:    with(memberCancelled),

	event.MessageStarted:   ofMember(messageStarted),
	event.MessageDelta:     ofMember(messageDelta),
	event.MessageCompleted: ofMember(messageCompleted),
	event.MessageDiscarded: ofMember(messageDiscarded),

	event.ReasoningDelta:     ofMember(reasoningDelta),
	event.ReasoningCompleted: ofMember(reasoningCompleted),

	event.ToolCalled:     ofMember(toolCalled),
	event.ToolCompleted:  ofMember(toolCompleted),
	event.ToolFailed:     ofMember(toolFailed),
	event.ToolUnknown:    ofMember(toolUnknown),
	event.JobStarted:     ofMember(jobStarted),
	event.JobSuspended:   ofMember(jobSuspended),
	event.InputRequested: ofMember(inputRequested),
	event.InputAnswered:  ofMember(inputAnswered),
	event.InputExpired:   ofMember(inputExpired),
	event.UsageRecorded:  ofMember(usageRecorded),
	event.RequestFailed:  ofMember(requestFailed),
	event.Notice:         ofMember(memberNoticed),
	event.TodosUpdated:   ofMember(memberTodos),

	event.ArtifactPersisted: ofMember(artifactPersisted),
	event.ArtifactUpdated:   ofMember(artifactUpdated),
}

// inTeam folds an event of a team's log.
func (t *Thread) inTeam(e event.Event) {
	t.at = t.out.innerOf(e)
	if v := t.at.Via; v.AgentID != "" && v.Status != "" {
		t.become(v.Route, v.Status)
	}
	if handle := teamHandlers[t.at.Type]; handle != nil {
		handle(t, t.at)
	}
}

// with decodes the event's data for f.
func with[T event.Data](f func(*Thread, T)) func(*Thread, event.Event) {
	return func(t *Thread, e event.Event) {
		if d, ok := dataOf[T](&t.out, e); ok {
			f(t, d)
		}
	}
}

// inRun is with for events of the active run. Late ones about another run, or behind the end of theirs, have no frames.
func inRun[T event.Data](f func(*Thread, T)) func(*Thread, event.Event) {
	return func(t *Thread, e event.Event) {
		if !t.working() {
			return
		}
		of, ok := t.out.headOf(e)
		if !ok || of.RunID != "" && of.RunID != t.run.id {
			return
		}
		if d, ok := dataOf[T](&t.out, e); ok {
			t.attempt = of.Attempt
			f(t, d)
		}
	}
}

// ofMember is with for events of a member's active run. Those after its end have no frames.
func ofMember[T event.Data](f func(*Thread, T)) func(*Thread, event.Event) {
	return func(t *Thread, e event.Event) {
		if !t.working() || e.Via.Route == "" {
			return
		}
		of, ok := t.out.headOf(e)
		if !ok || of.RunID != "" && t.team.active[of.RunID] != e.Via.Route {
			return
		}
		d, ok := dataOf[T](&t.out, e)
		if !ok {
			return
		}
		t.attempt, t.of = of.Attempt, of.RunID
		f(t, d)
	}
}
