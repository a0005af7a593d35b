package conversation

// windowBytes bounds the finished runs that a state keeps, as weigh counts them: more than the 256 KiB of conversation that
// a model gets.
const windowBytes = 512 << 10

// planBytes bounds the plan that a state keeps longer than that, so that people can restart its steps.
const planBytes = 128 << 10

// lost is what a state does not keep of its log.
type lost struct {
	Any  bool // ids of runs and calls that the log has may be unknown
	Runs int  // the oldest ones, since the state was restored from an export
}

// window is which finished runs a state keeps, and what it remembers of those that it has forgotten.
type window struct {
	Keep    int // see State.Keep
	Lost    lost
	Planned *Run   // the newest planned run, if it is forgotten: see Run.bare
	Asking  string // the newest question of the planned runs that are forgotten

	thin bool // see State.Thin
}

// limit returns how many bytes of finished runs are kept; negative: all.
func (w *window) limit() int {
	switch {
	case w.Keep < 0:
		return -1
	case w.thin:
		return 1
	case w.Keep == 0:
		return windowBytes
	}
	return w.Keep
}

// forget keeps of a run that is forgotten only the plan that people may still change.
func (w *window) forget(r *Run) {
	w.Lost = lost{Any: true, Runs: w.Lost.Runs + 1}
	if p := r.Plan; p != nil {
		w.Asking, w.Planned = orElse(p.Question, w.Asking), nil
		if r.Weight <= planBytes {
			w.Planned = r.bare()
		}
	}
}
