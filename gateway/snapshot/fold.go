// Package snapshot is the pure fold of a log into what people are shown of it. The console folds logs in the same way, so that
// its views as of any event have the same canonical form.
//
// It has no clock and no I/O, and never fails: a log with an unknown type, or without the beginning of something, shows what it can.
package snapshot

import (
	"encoding/json"
	"fmt"

	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Fold is the fold of a log. It is not safe for concurrent use.
type Fold struct {
	kind id.Kind
	base uint64
	last event.Event // without its data
	size int

	talk *talk // of a session or a member
	bars *bars // of all but a team
	team *team
	task *task
}

// Kinds are the kinds of logs that have snapshots.
func Kinds() []id.Kind { return []id.Kind{id.KindSession, id.KindMember, id.KindTeam, id.KindTask} }

// Cuts reports whether the fold of a log of the kind may begin in the middle: see Cut.
func Cuts(kind id.Kind) bool { return kind == id.KindSession || kind == id.KindMember }

// New returns the fold of a log of one of Kinds.
func New(kind id.Kind) *Fold {
	f := &Fold{kind: kind}
	switch kind {
	case id.KindTeam:
		f.team = newTeam()
	case id.KindTask:
		f.bars = &bars{}
		f.task = newTask(f.bars)
	default:
		f.bars, f.talk = &bars{}, newTalk(true)
	}
	return f
}

// Fork returns a fold that continues from here by itself.
func (f *Fold) Fork() *Fold {
	out := *f
	if f.bars != nil {
		out.bars = f.bars.fork()
	}
	switch {
	case f.team != nil:
		out.team = f.team.fork()
	case f.task != nil:
		out.task = f.task.fork(out.bars)
	default:
		out.talk = f.talk.fork()
	}
	return &out
}

// Take folds the next event.
func (f *Fold) Take(e event.Event) {
	if f.base == 0 {
		f.base = e.Sequence
	}
	f.size += len(e.Data)
	f.last = e
	f.last.Data = nil
	switch {
	case f.team != nil:
		f.team.take(e)
	case f.task != nil:
		f.bars.see(e)
		f.task.take(e)
	default:
		f.bars.see(e)
		if talkTakers[e.Type] == nil && barTakers[e.Type] == nil {
			return
		}
		d := read(e)
		f.bars.take(e, d)
		f.talk.take(e, d)
	}
}

// Seq returns the seq of the last event, 0 before the first one.
func (f *Fold) Seq() uint64 { return f.last.Sequence }

// Base returns the seq of the first event, 0 before it.
func (f *Fold) Base() uint64 { return f.base }

// Size returns the bytes of the events in it, which it takes at most.
func (f *Fold) Size() int { return f.size }

// Snapshot returns what the events so far say. The caller must not change it.
func (f *Fold) Snapshot(name id.Entity) wire.Snapshot {
	out := wire.Snapshot{
		Kind: string(f.kind), ID: name.String(), Base: f.base, Seq: f.last.Sequence, Type: string(f.last.Type), Time: f.last.Time,
	}
	if f.talk != nil {
		t := f.talk.snapshot()
		out.Conversation = &t
	}
	if f.bars != nil {
		out.Bars, out.Until = f.bars.snapshot(), f.bars.until
	}
	if f.team != nil {
		t := f.team.snapshot()
		out.Team, out.Until = &t, f.team.until
	}
	if f.task != nil {
		t := f.task.state
		out.Task = &t
	}
	return out
}

// Canonical returns the canonical JSON of a snapshot.
func Canonical(s wire.Snapshot) ([]byte, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode a snapshot: %w", err)
	}
	return canonical(raw), nil
}
