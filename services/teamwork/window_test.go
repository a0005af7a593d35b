package teamwork_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/teamwork"
)

// speech is the log of a team whose only member talks.
type speech struct {
	t     *testing.T
	log   subject.Log
	state *teamwork.State
	agent event.Event // the last of the member's own log
}

func newSpeech(t *testing.T) *speech {
	t.Helper()
	s := &speech{t: t, log: subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTeam, Entity: id.EntityFromExternal("team-1")}, state: &teamwork.State{}}
	s.append(event.TeamCreatedData{TeamID: "team-1", Definition: event.TeamDefinition{
		Name: "pair", Coordinator: "Lead", Members: []event.MemberDefinition{{Name: "Lead"}},
	}})
	return s
}

func (s *speech) append(d event.Data) {
	s.t.Helper()
	e, err := event.New(s.log, fmt.Sprint("e", s.state.Seq()), "test", time.Unix(0, 0), d)
	require.NoError(s.t, err)
	e.Sequence = s.state.Seq() + 1
	require.NoError(s.t, s.state.Apply(e))
}

// says appends an event of the member.
func (s *speech) says(d event.Data) {
	s.t.Helper()
	e, err := event.New(s.log, fmt.Sprint("a", s.agent.Sequence), "test", time.Unix(0, 0), d)
	require.NoError(s.t, err)
	e.Sequence = s.agent.Sequence + 1
	s.agent = e
	raw, err := json.Marshal(e)
	require.NoError(s.t, err)
	s.append(event.TeamMemberEventData{MemberName: "Lead", MemberID: "a", Seq: e.Sequence, Event: raw})
}

func (s *speech) talk(message string, parts int, part string) {
	s.t.Helper()
	s.says(event.MessageStartedData{MessageID: message, RunID: "r"})
	for range parts {
		s.says(event.MessageDeltaData{MessageID: message, RunID: "r", Text: part})
	}
	s.says(event.MessageCompletedData{MessageID: message, RunID: "r", Content: strings.Repeat(part, parts)})
}

// TestAViewerWithoutAPositionIsShownAWindow: the whole log while it is short, then not
// more than the window, beginning where nothing is cut in two; and everything since a
// question that waits.
func TestAViewerWithoutAPositionIsShownAWindow(t *testing.T) {
	s := newSpeech(t)
	for n := range 20 {
		s.talk(fmt.Sprint("m", n), 100, "word")
	}
	require.Zero(t, s.state.Recent(), "a short log is shown as a whole")
	for n := range 200 {
		s.talk(fmt.Sprint("n", n), 98, "word")
		require.Zero(t, (s.state.Recent()-min(s.state.Recent(), 1+20*102))%100, "no text is cut in two")
		require.LessOrEqual(t, s.state.Seq()-s.state.Recent(), uint64(10_000))
	}
	require.Greater(t, s.state.Seq()-s.state.Recent(), uint64(10_000-200), "and as much as fits")
	asked := s.state.Seq()
	s.says(event.InputRequestedData{InputID: "q", CallID: "c", RunID: "r", Scope: event.ScopeTool})
	for n := range 150 {
		s.talk(fmt.Sprint("o", n), 98, "word")
	}
	require.LessOrEqual(t, s.state.Recent(), asked, "a question that waits is shown")
	require.GreaterOrEqual(t, s.state.Recent()+200, asked, "and what is long before it is not")
	s.says(event.RunCancelledData{RunID: "r"})
	s.talk("p", 1, "word")
	require.LessOrEqual(t, s.state.Seq()-s.state.Recent(), uint64(15_200))
	for n := range 100 {
		s.talk(fmt.Sprint("q", n), 1, strings.Repeat("x", 200<<10))
	}
	require.Less(t, s.state.Seq()-s.state.Recent(), uint64(200), "texts are counted too")
}
