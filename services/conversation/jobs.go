package conversation

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/conversation/retry"
)

// jobs holds the jobs of the runs that a state keeps, by their ids.
type jobs map[string]*Job

// begin adds a job of a run.
func (j jobs) begin(w *Job, r *Run) {
	r.Jobs = append(r.Jobs, w)
	j.add(w, r)
}

func (j jobs) add(w *Job, r *Run) {
	w.run = r
	j[w.ID] = w
}

func (j jobs) forget(r *Run) {
	for _, w := range r.Jobs {
		delete(j, w.ID)
	}
}

// openJob returns the job that the reference names, if it is still open.
func (s *State) openJob(ref command.JobRef) (*Job, bool) {
	w, r := s.Job(ref.Job()), s.Run(ref.RunID)
	return w, w != nil && r != nil && r.Status == Running && !w.Ended && w.Failure == nil
}

// Wants reports whether the job that the reference names is still open.
func (s *State) Wants(ref command.JobRef) bool {
	_, ok := s.openJob(ref)
	return ok
}

// Unclaimed returns the jobs that no worker has taken up yet, in the order
// in which they were begun.
func (s *State) Unclaimed() []*Job {
	r := s.Active()
	if r == nil {
		return nil
	}
	var out []*Job
	for _, w := range r.Jobs {
		if !w.Ended && w.Attempt == 0 && w.Failure == nil {
			out = append(out, w)
		}
	}
	return out
}

// Claimed returns the jobs that a worker has claimed and that are neither suspended nor ended, in
// the order in which they began. A backup may hold the claim without the command; these jobs then
// need a new command.
func (s *State) Claimed() []*Job {
	r := s.Active()
	if r == nil {
		return nil
	}
	var out []*Job
	for _, w := range r.Jobs {
		if !w.Ended && !w.Paused && w.Attempt > 0 && w.Failure == nil && w.SwarmTask == "" {
			out = append(out, w)
		}
	}
	return out
}

// Ready returns the suspended jobs whose questions have been answered.
func (s *State) Ready() []*Job {
	r := s.Active()
	if r == nil {
		return nil
	}
	var out []*Job
	for _, w := range r.Jobs {
		if w.Paused && !w.Ended && w.Failure == nil && s.Next(w.ID).Kind != ActionWait {
			out = append(out, w)
		}
	}
	return out
}

// Abandoned returns the jobs whose agent of the swarm works on them, or may start to, although the
// run no longer needs the result.
func (s *State) Abandoned() []*Job {
	var out []*Job
	for _, r := range s.queue.order {
		for _, w := range r.Jobs {
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

// Delegated returns the jobs that agents of the swarm have, have had, or may be given:
// their tasks belong to the log alone.
func (s *State) Delegated() []*Job {
	var out []*Job
	for _, r := range s.queue.order {
		for _, w := range r.Jobs {
			if w.SwarmTask != "" || r.capability(w) != "" || r.Plan == nil && r.Spec.Agent != "" {
				out = append(out, w)
			}
		}
	}
	return out
}

// Retry returns the pause before a job's failed request is repeated. ok is false if it is not
// repeated, because the time for retries is used up or would be before then. The provider's wish, after, is
// never shortened.
func (s *State) Retry(workID string, now time.Time, after time.Duration, p retry.Patience) (pause time.Duration, ok bool) {
	w := s.Job(workID)
	if w == nil {
		return 0, false
	}
	pause, ok = p.Before(w.Outage.Tries+1, after, w.ID+w.Asked.String())
	due := now.Add(pause)
	if !ok || due.Sub(earliest(w.Outage.Since, w.Asked)) > p.Job {
		return 0, false
	}
	return pause, !w.run.exhausted(due, w.Asked, p.Run)
}

// SwarmTask is the id of the task that a job is given to the swarm as. It says itself:
// agents send it back, and an id of id.EntityFromExternal would become another one then.
// Jobs of different logs may have the same id.
func SwarmTask(log subject.Log, work string) string {
	sum := sha256.Sum256([]byte(log.Name() + "/" + work))
	return "work_" + hex.EncodeToString(sum[:16])
}
