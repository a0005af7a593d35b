package conversation

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// job returns the job that the reference names, if it is still open.
func (s *State) job(ref command.JobRef) (*Work, bool) {
	w, r := s.Work(ref.Job()), s.Run(ref.RunID)
	return w, w != nil && r != nil && r.Status == Running && !w.Ended && w.Failure == nil
}

// Wants reports whether the job that the reference names is still open.
func (s *State) Wants(ref command.JobRef) bool {
	_, ok := s.job(ref)
	return ok
}

// Swarm reports whether the log is that of a member which is an agent of the swarm:
// all its runs are done there.
func (s *State) Swarm() bool { return s.Agent != nil && s.Agent.Swarm() }

// InSwarm reports whether an agent of the swarm answers the run.
func (s *State) InSwarm(r *Run) bool { return r.Pipeline == nil && (s.Swarm() || r.Spec.Agent != "") }

// Abandoned returns the jobs whose agent of the swarm works on them, or may start to, although the
// run no longer needs the result.
func (s *State) Abandoned() []*Work {
	var out []*Work
	for _, r := range s.order {
		for _, w := range r.works {
			_, said := w.final()
			switch {
			case !w.Ended || said || w.Failure != nil:
			case s.InSwarm(r):
				if r.Status == Cancelled {
					out = append(out, w)
				}
			case w.SwarmTask != "":
				out = append(out, w)
			}
		}
	}
	return out
}

// SwarmTask is the id of the task that a job is given to the swarm as. It says itself:
// agents send it back, and an id of id.EntityFromExternal would become another one then.
// Jobs of different logs may have the same id.
func SwarmTask(log subject.Log, work string) string {
	sum := sha256.Sum256([]byte(log.Name() + "/" + work))
	return "work_" + hex.EncodeToString(sum[:16])
}

// Delegated returns the jobs that agents of the swarm have, have had, or may be given:
// their tasks belong to the log alone.
func (s *State) Delegated() []*Work {
	var out []*Work
	for _, r := range s.order {
		for _, w := range r.works {
			if w.SwarmTask != "" || r.capability(w) != "" || r.Pipeline == nil && r.Spec.Agent != "" {
				out = append(out, w)
			}
		}
	}
	return out
}

// capability is the capability that the task of a job requires; empty if any worker will do.
func (r *Run) capability(w *Work) string {
	if w.Part.Stage != event.StageSolving || r.Pipeline == nil {
		return ""
	}
	t := r.Pipeline.Task(w.Part.StepID)
	if t == nil {
		return ""
	}
	return t.Capability
}
