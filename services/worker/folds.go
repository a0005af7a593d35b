package worker

import (
	"errors"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/ledger"
)

const (
	// keptLogs and keptEvents bound the folds that a worker keeps besides those at rest: a fold takes some 400 bytes an event.
	keptLogs   = 64
	keptEvents = 100_000
	// windowEvents bounds what one fold counts: a state keeps the newest runs only.
	windowEvents = 5000
)

// fold is the state of a log, for one job at a time.
type fold struct {
	log *ledger.Log[conversation.State]

	// The sentinel of a job folds the log once more, in a goroutine of its own. Until the first job has one, both states
	// take the same events. The shadow keeps no finished runs, because a sentinel asks about its job only.
	shadow *conversation.State
	seen   eventlog.Cursor // of the shadow, once it was lent
	lent   bool
	broken bool // the shadow cannot be used again
}

// newFold returns a fold that has read nothing, or the one at rest.
func (s *Service) newFold(ref subject.Log) *fold {
	f := &fold{}
	f.log = ledger.Open(ledger.Config[conversation.State]{
		Store: s.deps.Log, Source: source, Now: s.cfg.Now, Fold: f.apply, Snapshots: s.snapshots, Begun: f.begin,
	}, ref)
	f.log.Wake(s.folds.resting.Take(ref))
	return f
}

// begin begins the shadow with the state, when the log begins with it or, without one, at its beginning.
func (f *fold) begin(state *conversation.State) {
	f.shadow, f.broken = &conversation.State{}, f.broken || f.lent
	f.shadow.Thin()
	if state == nil {
		return
	}
	thin, err := state.Thinned()
	if err != nil {
		f.broken = true
		return
	}
	f.shadow = thin
}

func (f *fold) apply(s *conversation.State, e event.Event) error {
	if !f.lent {
		_ = f.shadow.Apply(e) // an event that cannot be folded breaks the log
	}
	return s.Apply(e)
}

// size returns the number of events that the fold counts for.
func (f *fold) size() uint64 { return min(f.log.Cursor().Seq, windowEvents) }

// lend returns the shadow with its position.
func (f *fold) lend() (*conversation.State, eventlog.Cursor) {
	if !f.lent {
		f.lent, f.seen = true, f.log.Cursor()
	}
	return f.shadow, f.seen
}

// folds keeps the folds that jobs have used last, so that the next job of a log reads only what came since: a conversation
// does not become slower with its length. It is safe for concurrent use. A job without a kept fold reads the log from
// its newest snapshot.
type folds struct {
	resting *ledger.Resting // those used before

	mu     sync.Mutex
	recent *simplelru.LRU[subject.Log, *fold]
	events uint64 // of all recent folds
}

func newFolds() (*folds, error) {
	x := &folds{}
	var err, restErr error
	x.resting, restErr = ledger.NewResting()
	x.recent, err = simplelru.NewLRU(keptLogs+1, func(_ subject.Log, f *fold) { x.events -= f.size() })
	return x, errors.Join(err, restErr)
}

// take returns the fold of a log, which belongs to the caller until give; nil if none is kept, or another job of the log has it.
func (x *folds) take(ref subject.Log) *fold {
	x.mu.Lock()
	defer x.mu.Unlock()
	f, ok := x.recent.Get(ref)
	if !ok {
		return nil
	}
	x.recent.Remove(ref)
	return f
}

// give keeps a fold for the next job.
func (x *folds) give(f *fold) {
	if f.broken || f.log.Deleted() {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.recent.Remove(f.log.Ref) // that of another job of the log
	x.events += f.size()
	x.recent.Add(f.log.Ref, f)
	for x.recent.Len() > keptLogs || x.events > keptEvents && x.recent.Len() > 1 {
		if ref, old, ok := x.recent.RemoveOldest(); ok {
			x.resting.Put(ref, old.log.Rest())
		}
	}
}
