package conversation

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation/usage"
)

// FoldVersion is the version of the fold. It changes whenever the fold of a log changes (a test checks it); stored states of other
// versions are ignored.
const FoldVersion = 5

// errStored is wrapped by the errors of Load: the log has to be folded from its beginning.
var errStored = errors.New("no stored state of this fold")

// stored is a State as JSON: its parts as they are, without what is zero, which is a quarter of a long chat, and without what
// follows from the rest.
type stored struct {
	Version int
	Seq     uint64
	Profile
	Runs     []*Run
	LastExec string
	Calls    []storedCall
	Must     []string
	Known    []byte
	Refusals []event.MessageRefusedData
	Window   window
	History  []Line
	Totals   usage.Totals
	Timed    string // the id of the run
	Clock    string
}

// storedCall keeps the arguments as they are: a document would lose its form.
type storedCall struct {
	*Call
	Arguments string
}

// encode: see State.Store.
func encode(s *State) ([]byte, error) {
	out := stored{
		Version: FoldVersion, Seq: s.Seq, Profile: s.Profile, Runs: s.queue.order, LastExec: s.queue.lastExec,
		Must: slices.Sorted(maps.Keys(s.calls.must)), Known: s.known.encode(), Refusals: s.known.refusals,
		Window: s.window, History: s.history, Totals: s.totals, Clock: s.meter.clock,
	}
	for _, id := range slices.Sorted(maps.Keys(s.calls.byID)) {
		out.Calls = append(out.Calls, storedCall{s.calls.byID[id], string(s.calls.byID[id].Arguments)})
	}
	if s.meter.timed != nil {
		out.Timed = s.meter.timed.ID
	}
	raw, err := eventdata.Sparse(out)
	if err != nil {
		return nil, fmt.Errorf("store the state of a conversation: %w", err)
	}
	return raw, nil
}

// Load returns the state that Store was called with, or an error if the log has to be folded from its beginning.
func Load(raw []byte) (*State, error) {
	var in stored
	if err := eventdata.FromSparse(raw, &in); err != nil {
		return nil, fmt.Errorf("%w: %w", errStored, err)
	}
	if in.Version != FoldVersion {
		return nil, fmt.Errorf("%w: it is of version %d, the fold of version %d", errStored, in.Version, FoldVersion)
	}
	s := &State{
		Seq: in.Seq, Profile: in.Profile, queue: queue{lastExec: in.LastExec}, known: receipts{refusals: in.Refusals},
		window: in.Window, history: in.History, totals: in.Totals, meter: meter{clock: in.Clock},
	}
	s.init()
	if err := in.link(s); err != nil {
		return nil, fmt.Errorf("%w: %w", errStored, err)
	}
	return s, nil
}

// link gives a state the parts that refer to each other.
func (in *stored) link(s *State) (err error) {
	if s.known.marks, err = decodeMarks(in.Known); err != nil {
		return err
	}
	for _, id := range in.Must {
		s.calls.must[id] = true
	}
	for _, c := range in.Calls {
		c.Call.Arguments = rawOf(c.Arguments)
		s.calls.byID[c.ID] = c.Call
	}
	for _, r := range in.Runs {
		s.queue.add(r)
		for _, j := range r.Jobs {
			s.jobs.add(j, r)
		}
		for _, q := range r.Questions {
			s.questions.add(q)
		}
		if err := r.link(s.jobs); err != nil {
			return err
		}
	}
	if s.meter.timed = s.queue.byID[in.Timed]; s.meter.timed == nil && in.Timed != "" {
		return fmt.Errorf("it lacks the run %q", in.Timed)
	}
	return nil
}
