package teamwork

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// SnapshotVersion is the version of the fold. It changes whenever the fold of a log changes (a test
// checks it); snapshots of other versions are ignored.
const SnapshotVersion = 4

// ErrSnapshot is wrapped by the errors of Restore: the log has to be folded from its
// beginning.
var ErrSnapshot = errors.New("no snapshot of this fold")

// snapshot is a State as JSON, without the parts that follow from the team's id and definition.
type snapshot struct {
	Version     int                            `json:"version"`
	Seq         uint64                         `json:"seq"`
	Created     time.Time                      `json:"created"`
	Entity      string                         `json:"entity"`
	Head        event.TeamCreatedData          `json:"head"`
	Members     []memberState                  `json:"members"` // in the order of the definition
	Deep        map[string]string              `json:"deep,omitempty"`
	Messages    set                            `json:"messages,omitempty"`
	Pending     []letter                       `json:"pending,omitempty"`
	Delegations map[string]*delegation         `json:"errands,omitempty"`
	Reports     []report                       `json:"reports,omitempty"`
	Status      string                         `json:"status"`
	Problem     string                         `json:"problem,omitempty"`
	Statuses    int                            `json:"statuses"`
	Tainted     bool                           `json:"tainted,omitempty"`
	Paused      bool                           `json:"paused,omitempty"`
	Flips       int                            `json:"flips,omitempty"`
	PausedAt    uint64                         `json:"paused_at,omitempty"`
	Closing     *event.TeamClosingData         `json:"closing,omitempty"`
	Closed      bool                           `json:"closed,omitempty"`
	Once        set                            `json:"once,omitempty"`
	Board       []*boardTask                   `json:"board,omitempty"`
	Acts        map[string]event.TeamActedData `json:"acts,omitempty"`
	Questions   map[string]question            `json:"questions,omitempty"`
	BusyFrom    uint64                         `json:"busy_from,omitempty"`
	Window      window                         `json:"window"`
}

// Snapshot returns the state of a team that has been created, so that Restore gives the
// same again. The same state gives the same bytes.
func (s *State) Snapshot() ([]byte, error) {
	snap := snapshot{
		Version: SnapshotVersion, Seq: s.seq, Created: s.created, Entity: s.entity.String(), Head: s.head, Deep: s.deep,
		Messages: s.messages, Pending: s.pending, Delegations: s.delegations, Reports: s.reports, Status: s.status, Problem: s.problem,
		Statuses: s.statuses, Tainted: s.tainted, Paused: s.paused, Flips: s.flips, PausedAt: s.pausedAt, Closing: s.closing, Closed: s.closed,
		Once: s.once, Board: s.board, Acts: s.acts, Questions: s.questions, BusyFrom: s.busyFrom, Window: s.window,
	}
	for _, m := range s.order {
		snap.Members = append(snap.Members, m.memberState)
	}
	raw, err := json.Marshal(snap)
	if err != nil {
		return nil, fmt.Errorf("snapshot of team %s: %w", s.entity, err)
	}
	return raw, nil
}

// set is a set of texts. As JSON it is a sorted list.
type set map[string]bool

// MarshalJSON implements json.Marshaler.
func (x set) MarshalJSON() ([]byte, error) { return json.Marshal(slices.Sorted(maps.Keys(x))) }

// UnmarshalJSON implements json.Unmarshaler.
func (x *set) UnmarshalJSON(raw []byte) error {
	var list []string
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	*x = make(set, len(list))
	for _, text := range list {
		(*x)[text] = true
	}
	return nil
}

// Restore returns the state that a snapshot was made of. The error wraps ErrSnapshot.
func Restore(raw []byte) (*State, error) {
	var snap snapshot
	if err := json.Unmarshal(raw, &snap); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	if snap.Version != SnapshotVersion {
		return nil, fmt.Errorf("%w: it is of version %d, the fold of version %d", ErrSnapshot, snap.Version, SnapshotVersion)
	}
	s := &State{}
	if err := s.restore(snap); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	return s, nil
}

func (s *State) restore(snap snapshot) error {
	entity, err := id.ParseEntity(snap.Entity)
	if err != nil {
		return err
	}
	if err := s.begin(entity, snap.Created, snap.Head); err != nil {
		return err
	}
	if len(snap.Members) != len(s.order) {
		return fmt.Errorf("it has %d members, the definition %d", len(snap.Members), len(s.order))
	}
	s.seq, s.status, s.problem, s.statuses, s.tainted = snap.Seq, snap.Status, snap.Problem, snap.Statuses, snap.Tainted
	s.paused, s.flips, s.pausedAt, s.busyFrom = snap.Paused, snap.Flips, snap.PausedAt, snap.BusyFrom
	s.closing, s.closed, s.window = snap.Closing, snap.Closed, snap.Window
	s.pending, s.reports, s.board = snap.Pending, snap.Reports, snap.Board
	maps.Copy(s.messages, snap.Messages)
	maps.Copy(s.once, snap.Once)
	maps.Copy(s.deep, snap.Deep)
	maps.Copy(s.acts, snap.Acts)
	maps.Copy(s.delegations, snap.Delegations)
	maps.Copy(s.questions, snap.Questions)
	for call, q := range snap.Questions {
		s.inputs[q.Input] = call
	}
	for i, m := range snap.Members {
		if m.Runs == nil {
			m.Runs = set{}
		}
		s.order[i].memberState = m
	}
	return nil
}
