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
func (known jobs) begin(j *Job, r *Run) {
	r.Jobs = append(r.Jobs, j)
	known.add(j, r)
}

func (known jobs) add(j *Job, r *Run) {
	j.run = r
	known[j.ID] = j
}

func (known jobs) forget(r *Run) {
	for _, j := range r.Jobs {
		delete(known, j.ID)
	}
}

// openJob returns the job that the reference names, if it is still open.
func (s *State) openJob(ref command.JobRef) (*Job, bool) {
	j, r := s.Job(ref.Job()), s.Run(ref.RunID)
	return j, j != nil && r != nil && r.Status == Running && !j.Ended && j.Failure == nil
}

// Wants reports whether the job that the reference names is still open.
func (s *State) Wants(ref command.JobRef) bool {
	_, ok := s.openJob(ref)
	return ok
}

// Unclaimed returns the jobs of the active run that no worker has claimed, in the order in which they began.
func (s *State) Unclaimed() []*Job {
	r := s.Active()
	if r == nil {
		return nil
	}
	var out []*Job
	for _, j := range r.Jobs {
		if !j.Ended && j.Attempt == 0 && j.Failure == nil {
			out = append(out, j)
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
	for _, j := range r.Jobs {
		if !j.Ended && !j.Paused && j.Attempt > 0 && j.Failure == nil && j.SwarmTask == "" {
			out = append(out, j)
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
	for _, j := range r.Jobs {
		if j.Paused && !j.Ended && j.Failure == nil && s.Next(j.ID).Kind != ActionWait {
			out = append(out, j)
		}
	}
	return out
}

// Abandoned returns the jobs whose agent of the swarm works on them, or may start to, although the
// run no longer needs the result.
func (s *State) Abandoned() []*Job {
	var out []*Job
	for _, r := range s.queue.order {
		for _, j := range r.Jobs {
			_, said := j.final()
			switch {
			case !j.Ended || said || j.Failure != nil:
			case s.InSwarm(r):
				if r.Status == Cancelled {
					out = append(out, j)
				}
			case j.SwarmTask != "":
				out = append(out, j)
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
		for _, j := range r.Jobs {
			if j.SwarmTask != "" || r.capability(j) != "" || r.Plan == nil && r.Spec.Agent != "" {
				out = append(out, j)
			}
		}
	}
	return out
}

// Retry returns the pause before a job's failed request is repeated. ok is false if it is not
// repeated, because the time for retries is used up or would be before then. The provider's wish, after, is
// never shortened.
func (s *State) Retry(workID string, now time.Time, after time.Duration, p retry.Patience) (pause time.Duration, ok bool) {
	j := s.Job(workID)
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

// SwarmTask is the id of the task that hands a job to the swarm. It is made without id.EntityFromExternal: agents send it
// back, and a second conversion would change it.
// Jobs of different logs may have the same id.
func SwarmTask(log subject.Log, work string) string {
	sum := sha256.Sum256([]byte(log.Name() + "/" + work))
	return "work_" + hex.EncodeToString(sum[:16])
}
