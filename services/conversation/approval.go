package conversation

import (
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// teamTools are the tools that a team offers to its members.
var teamTools = map[string]bool{
	command.ToolSendMessage: true,
	command.ToolCreateTasks: true,
	command.ToolUpdateTask:  true,
	command.ToolListTasks:   true,
	command.ToolUpdateTodos: true,
}

// TeamTool reports whether the tool is one that a team offers its members. These run without
// approval.
func TeamTool(name string) bool { return teamTools[name] }

// InputOf returns the id of the question whether the call may run.
func InputOf(callID string) string { return "approve_" + callID }

// Approval is the question about a tool call with its answer.
type Approval struct {
	InputID  string
	Digest   string       // of the call that was asked about, or of the changed one
	Shown    string       // digest of the tool as it was shown; empty: not known
	Decision string       // approve, modify, reject; empty: no answer
	Over     bool         // the question is closed
	Proof    *event.Proof // of the decision
}

// Allowed reports whether people have allowed the call, as it was or as they have changed it.
func (a Approval) Allowed() bool {
	return a.Decision == event.DecisionApprove || a.Decision == event.DecisionModify
}

// Approval returns the question about the call; ok is false if people were not asked.
func (s *State) Approval(callID string) (a Approval, ok bool) {
	in := s.asked[callID]
	if in == nil {
		return Approval{}, false
	}
	a = Approval{InputID: in.ID, Digest: in.Digest, Shown: in.Shown, Over: in.Over}
	if in.Answered != nil {
		a.Decision, a.Proof = in.Answered.Decision, in.Answered.Proof
	}
	if a.Decision == event.DecisionModify {
		a.Digest = event.CallDigest(in.Tool, in.Answered.Arguments)
	}
	return a, true
}

// Asks reports whether people have to allow the call. It is decided when the model has asked for the call.
func (s *State) Asks(callID string) bool { return s.must[callID] }

// ask records which calls of a message people have to allow. Policies are those of the time at which the model asked.
func (s *State) ask(r *Run, calls []event.ToolCall) {
	for _, tc := range calls {
		c := event.PendingCall{
			Policy: tc.Policy, Tainted: s.Tainted, Invalid: tc.Invalid != "", Client: r.Spec.ClientTool(tc.Name) != nil,
			TeamTool: s.Agent != nil && teamTools[tc.Name], Supervised: s.Agent != nil && !s.Agent.AutoExecuteTools,
		}
		if c.NeedsPerson() {
			s.must[tc.ID] = true
		}
	}
}

// sort splits the calls without an outcome into those that may run, those that need a question, and
// those whose question is open. A call that has begun may run: the worker that resumes it decides
// about it.
func (s *State) sort(calls []event.ToolCall) (st Step) {
	for _, tc := range calls {
		a, asked := s.Approval(tc.ID)
		switch {
		case !s.must[tc.ID], s.calls[tc.ID] != nil, a.Allowed():
			st.Calls = append(st.Calls, tc)
		case !asked:
			st.Ask = append(st.Ask, tc)
		default:
			st.Inputs = append(st.Inputs, a.InputID)
		}
	}
	st.Kind = StepCalls
	if len(st.Calls)+len(st.Ask) == 0 {
		st.Kind = StepWait
	}
	return st
}

// Spent returns how many claims of the job count against the limit: those since it was suspended
// last. Waiting for people costs no attempts.
func (w *Work) Spent() int { return w.Attempt - w.rested }

// Resumption is the id of the work item that has the job taken up again after its
// newest pause.
func (w *Work) Resumption() string { return w.pause + ".resumed" }

// Ready returns the suspended jobs whose questions have been answered.
func (s *State) Ready() []*Work {
	r := s.Active()
	if r == nil {
		return nil
	}
	var out []*Work
	for _, w := range r.works {
		if w.Paused && !w.Ended && w.Failure == nil && s.Next(w.ID).Kind != StepWait {
			out = append(out, w)
		}
	}
	return out
}
