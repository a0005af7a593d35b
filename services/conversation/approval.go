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

// TeamTool reports whether a member of a team has the tool from its team. Nobody is
// asked before one of those runs.
func TeamTool(name string) bool { return teamTools[name] }

// InputOf returns the id of the question whether the call may run.
func InputOf(callID string) string { return "approve_" + callID }

// Approval is what people were asked about a tool call, and what they said.
type Approval struct {
	InputID  string
	Digest   string // of the call that was asked about
	Decision string // approve, reject; empty: nobody has answered
	Over     bool   // the question is not open any more
}

// Approval returns the question about the call; ok is false if there was none.
func (s *State) Approval(callID string) (a Approval, ok bool) {
	in := s.asked[callID]
	if in == nil {
		return Approval{}, false
	}
	a = Approval{InputID: in.ID, Digest: in.Digest, Over: in.Over}
	if in.Answered != nil {
		a.Decision = in.Answered.Decision
	}
	return a, true
}

// asks reports whether people are asked before the log's agent runs the tool.
func (s *State) asks(tool string) bool {
	return s.Agent != nil && !s.Agent.AutoExecuteTools && !teamTools[tool]
}

// sort tells apart what of the calls without an outcome may run, what people have to
// be asked about, and what they have not answered yet. A call that was begun is in
// the hands of whoever goes on with it.
func (s *State) sort(calls []event.ToolCall) (st Step) {
	for _, tc := range calls {
		a, asked := s.Approval(tc.ID)
		switch {
		case !s.asks(tc.Name), s.calls[tc.ID] != nil, a.Decision == event.DecisionApprove:
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

// Spent returns how many claims of the job count against the limit: those since it
// was put down last. Nobody who waits for people uses up attempts.
func (w *Work) Spent() int { return w.Attempt - w.rested }

// Resumption is the id of the work item that has the job taken up again after its
// newest pause.
func (w *Work) Resumption() string { return w.pause + ".resumed" }

// Ready returns the jobs that were put down and could go on, because people have
// answered since.
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
