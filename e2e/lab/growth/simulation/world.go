package simulation

import "time"

// world is all cells with their users.
type world struct {
	cfg     Config
	e       *engine
	cells   []*cell
	tenants []*tenant
	answers []sample
	tokens  []sample
	failed  int
	inside  int           // users that wait for an answer
	changed time.Duration // when inside was last counted
	present time.Duration // users that wait, over time
}

// waiting counts a user that begins or ends to wait.
func (w *world) waiting(n int) {
	w.present += (w.e.now - w.changed) * time.Duration(w.inside)
	w.changed = w.e.now
	w.inside += n
}

// line is the round trip between a user of a tenant and its cell.
func (w *world) line(t *tenant) time.Duration {
	if t.remote {
		return w.cfg.Load.Line + w.cfg.Load.RemoteLine
	}
	return w.cfg.Load.Line
}

// tenant is where users live.
type tenant struct {
	cell   int
	remote bool
	moving bool
	parked []func() // messages that wait for the end of a move
	users  []*user

	answered, failed int
}

// user is a person with one socket and one session. It asks, waits for the answer, thinks, and asks again.
type user struct {
	w       *world
	r       chance // of its work
	own     chance // of its thoughts and of models, which no queue changes
	tenant  *tenant
	key     int // chooses gateway, partition and shard
	asked   int
	current *answer
}

// answer is one message on its way to its answer.
type answer struct {
	u        *user
	c        *cell
	began    time.Duration
	model    time.Duration // that the model took so far
	first    bool          // the first piece has arrived
	spoke    bool          // the first piece was appended
	writing  bool          // an append of pieces is in flight, or lingers
	gathered int           // pieces that wait for it
	complete bool          // the model has ended
	waited   time.Duration // of the model, until the first piece
	done     func()        // frees the worker for the next job
}
