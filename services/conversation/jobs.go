package conversation

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// jobs holds the jobs of the runs that a state keeps, by their ids.
type jobs map[string]*Job

// begin adds a job of a run.
func (js jobs) begin(j *Job, r *Run) {
	r.Jobs = append(r.Jobs, j)
	js.add(j, r)
}

func (js jobs) add(j *Job, r *Run) {
	j.run = r
	js[j.ID] = j
}

func (js jobs) forget(r *Run) {
	for _, j := range r.Jobs {
		delete(js, j.ID)
	}
}

// SwarmTask is the id of the task that hands a job to the swarm. It is made without id.EntityFromExternal: agents send it
// back, and a second conversion would change it.
// Jobs of different logs may have the same id.
func SwarmTask(log subject.Log, work string) string {
	sum := sha256.Sum256([]byte(log.Name() + "/" + work))
	return "work_" + hex.EncodeToString(sum[:16])
}
