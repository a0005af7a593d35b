package conversation

import (
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// agentAsked folds a question of an agent of the swarm.
func (s *State) agentAsked(e event.Event, d event.InputRequestedData) error {
	return s.onRun(d.RunID, func(r *Run) {
		if s.inputs[d.InputID] != nil {
			return
		}
		in := &Input{
			ID: d.InputID, RunID: d.RunID, Asked: e.Time, Over: r.Status.Terminal(), Timeout: time.Duration(d.TimeoutSeconds) * time.Second,
			Asking: &Asking{Work: d.Job(d.RunID), Task: d.TaskID, Seq: d.TaskSeq},
		}
		s.inputs[d.InputID] = in
		r.questions = append(r.questions, in)
	})
}
