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
	Members     []memberSnapshot               `json:"members"` // in the order of the definition
	Deep        map[string]string              `json:"deep,omitempty"`
	Messages    []string                       `json:"messages,omitempty"`
	Pending     []letterSnapshot               `json:"pending,omitempty"`
	Delegations map[string]delegationSnapshot  `json:"errands,omitempty"`
	Reports     []reportSnapshot               `json:"reports,omitempty"`
	Status      string                         `json:"status"`
	Problem     string                         `json:"problem,omitempty"`
	Statuses    int                            `json:"statuses"`
	Tainted     bool                           `json:"tainted,omitempty"`
	Paused      bool                           `json:"paused,omitempty"`
	Flips       int                            `json:"flips,omitempty"`
	PausedAt    uint64                         `json:"paused_at,omitempty"`
	Closing     *event.TeamClosingData         `json:"closing,omitempty"`
	Closed      bool                           `json:"closed,omitempty"`
	Once        []string                       `json:"once,omitempty"`
	Board       []boardSnapshot                `json:"board,omitempty"`
	Acts        map[string]event.TeamActedData `json:"acts,omitempty"`
	Questions   map[string]questionSnapshot    `json:"questions,omitempty"`
	BusyFrom    uint64                         `json:"busy_from,omitempty"`
	Window      window                         `json:"window"`
}

type memberSnapshot struct {
	Started bool     `json:"started,omitempty"`
	Seq     uint64   `json:"seq,omitempty"`
	Status  string   `json:"status"`
	Runs    []string `json:"runs,omitempty"`
	Halted  bool     `json:"halted,omitempty"`
	Flip    int      `json:"flip,omitempty"`
	Failed  string   `json:"failed,omitempty"`
	Closed  bool     `json:"closed,omitempty"`
}

type letterSnapshot struct {
	Letter event.TeamMessageData `json:"letter"`
	Seq    uint64                `json:"seq"`
}

type delegationSnapshot struct {
	Letter event.TeamMessageData `json:"letter"`
	Route  string                `json:"route"` // of the agent
	Run    string                `json:"run,omitempty"`
}

type reportSnapshot struct {
	ID     string                `json:"id"`
	Member string                `json:"member"`
	Letter event.TeamMessageData `json:"letter"`
	Text   string                `json:"text,omitempty"`
	Failed bool                  `json:"failed,omitempty"`
}

type questionSnapshot struct {
	Agent string `json:"agent"`
	Input string `json:"input"`
}

type boardSnapshot struct {
	Task     event.BoardTask `json:"task"`
	Notices  int             `json:"notices,omitempty"`
	Told     bool            `json:"told,omitempty"`
	BySystem bool            `json:"by_system,omitempty"`
}

// Snapshot returns the state of a team that has been created, so that Restore gives the
// same again. The same state gives the same bytes.
func (s *State) Snapshot() ([]byte, error) {
	snap := snapshot{
		Version: SnapshotVersion, Seq: s.seq, Created: s.created, Entity: s.entity.String(), Head: s.head, Deep: s.deep,
		Messages: names(s.messages), Delegations: map[string]delegationSnapshot{}, Status: s.status, Problem: s.problem, Statuses: s.statuses,
		Tainted: s.tainted, Paused: s.paused, Flips: s.flips, PausedAt: s.pausedAt, Closing: s.closing, Closed: s.closed, Once: names(s.once),
		Acts: s.acts, Questions: map[string]questionSnapshot{}, BusyFrom: s.busyFrom, Window: s.window.clone(),
	}
	for _, m := range s.order {
		snap.Members = append(snap.Members, memberSnapshot{m.started, m.seq, m.status, names(m.runs), m.halted, m.flip, m.failed, m.closed})
	}
	for _, l := range s.pending {
		snap.Pending = append(snap.Pending, letterSnapshot{l.TeamMessageData, l.seq})
	}
	for message, e := range s.delegations {
		snap.Delegations[message] = delegationSnapshot{e.letter, e.agent.Route, e.run}
	}
	for _, r := range s.reports {
		snap.Reports = append(snap.Reports, reportSnapshot{r.id, r.member, r.letter, r.text, r.failed})
	}
	for _, t := range s.board {
		snap.Board = append(snap.Board, boardSnapshot{t.BoardTask, t.notices, t.told, t.bySystem})
	}
	for call, q := range s.questions {
		snap.Questions[call] = questionSnapshot{q.agent.String(), q.input}
	}
	raw, err := json.Marshal(snap)
	if err != nil {
		return nil, fmt.Errorf("snapshot of team %s: %w", s.entity, err)
	}
	return raw, nil
}

// names are the members of a set, sorted.
func names(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

func set(list []string) map[string]bool {
	out := make(map[string]bool, len(list))
	for _, name := range list {
		out[name] = true
	}
	return out
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
	s.seq, s.status, s.problem, s.statuses = snap.Seq, snap.Status, snap.Problem, snap.Statuses
	s.tainted = snap.Tainted
	s.paused, s.flips, s.pausedAt, s.busyFrom = snap.Paused, snap.Flips, snap.PausedAt, snap.BusyFrom
	s.window = snap.Window.clone()
	s.closing, s.closed, s.messages, s.once = snap.Closing, snap.Closed, set(snap.Messages), set(snap.Once)
	maps.Copy(s.deep, snap.Deep)
	maps.Copy(s.acts, snap.Acts)
	for i, m := range snap.Members {
		n := s.order[i]
		n.started, n.seq, n.status, n.runs = m.Started, m.Seq, m.Status, set(m.Runs)
		n.halted, n.flip, n.failed, n.closed = m.Halted, m.Flip, m.Failed, m.Closed
	}
	return s.restoreMail(snap)
}

// restoreMail restores the messages between members.
func (s *State) restoreMail(snap snapshot) error {
	for _, l := range snap.Pending {
		s.pending = append(s.pending, letter{l.Letter, l.Seq})
	}
	for _, r := range snap.Reports {
		s.reports = append(s.reports, report{r.ID, r.Member, r.Letter, r.Text, r.Failed})
	}
	for _, t := range snap.Board {
		s.board = append(s.board, &boardTask{t.Task, t.Notices, t.Told, t.BySystem})
	}
	for message, e := range snap.Delegations {
		p, err := s.roster.find(e.Route)
		if err != nil {
			return err
		}
		s.delegations[message] = &delegation{e.Letter, p, e.Run}
	}
	for call, q := range snap.Questions {
		agent, err := id.ParseEntity(q.Agent)
		if err != nil {
			return err
		}
		s.questions[call], s.inputs[q.Input] = question{agent, q.Input}, call
	}
	return nil
}
