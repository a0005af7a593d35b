package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/verify"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// memberLogs are the logs of all members below a team, by route; that of the team itself
// has the empty one.
type memberLogs struct {
	events map[string][]verify.Stored
	ids    map[string]string
	teams  []string // routes of teams, each before those in it
	agents []string
}

// logs reads the log of a team, and of all below it, from NATS.
func (c *teamFleet) logs(team string) memberLogs {
	c.t.Helper()
	l := memberLogs{events: map[string][]verify.Stored{}, ids: map[string]string{}}
	c.readTeam(&l, "", team)
	return l
}

func (c *teamFleet) readTeam(l *memberLogs, route, team string) {
	c.t.Helper()
	l.teams, l.ids[route] = append(l.teams, route), team
	l.events[route] = verify.ReadLog(c.t, c.nc, verify.LogOf(id.KindTeam, team))
	for _, e := range l.events[route] {
		if e.Type != event.TeamMemberStarted {
			continue
		}
		d := dataOf[event.TeamMemberStartedData](c.t, e.Event)
		at := strings.TrimPrefix(route+"/"+d.Name, "/")
		if d.Kind == event.MemberTeam {
			c.readTeam(l, at, d.ID)
			continue
		}
		l.agents, l.ids[at] = append(l.agents, at), d.ID
		l.events[at] = verify.ReadLog(c.t, c.nc, verify.LogOf(id.KindMember, d.ID))
	}
}

func dataOf[T event.Data](t testing.TB, e event.Event) T {
	t.Helper()
	d, err := event.As[T](e)
	require.NoError(t, err, "%s", e.Data)
	return d
}

// relayed is an event of a member's log as the log of its team holds it.
type relayed struct {
	seq    uint64
	raw    []byte
	status [2]string // the old and the new one of an agent, if it changes
}

// inside returns what the log of a team holds of each of its members, by name.
func inside(t testing.TB, log []verify.Stored) map[string][]relayed {
	t.Helper()
	out := map[string][]relayed{}
	for _, e := range log {
		switch e.Type {
		case event.TeamMemberEvent:
			d := dataOf[event.TeamMemberEventData](t, e.Event)
			out[d.MemberName] = append(out[d.MemberName], relayed{d.Seq, d.Event, [2]string{d.OldStatus, d.Status}})
		case event.TeamSubTeamEvent:
			d := dataOf[event.TeamSubTeamEventData](t, e.Event)
			out[d.SubTeamNodeName] = append(out[d.SubTeamNodeName], relayed{seq: d.Seq, raw: d.SubTeamEvent})
		}
	}
	return out
}

// exact requires that the log of every team holds all of its members' logs, byte for
// byte, in order, and returns how many events of members the outermost one holds.
func (l memberLogs) exact(t testing.TB) int {
	t.Helper()
	for _, team := range l.teams {
		for name, got := range inside(t, l.events[team]) {
			own := l.events[strings.TrimPrefix(team+"/"+name, "/")]
			require.Len(t, got, len(own), "%s of %q", name, team)
			for i, e := range got {
				require.EqualValues(t, i+1, e.seq, "%s of %q", name, team)
				require.Equal(t, string(own[i].Raw), string(e.raw), "%s of %q", name, team)
			}
		}
	}
	return l.unpacked(t)
}

// unpacked requires that the events of the outermost log, unwrapped layer by layer, give
// every agent's log, and returns how many events those have.
func (l memberLogs) unpacked(t testing.TB) (n int) {
	t.Helper()
	got := map[string][]string{}
	for _, e := range l.events[""] {
		raw, at, route := e.Raw, e.Event, []string(nil)
		for at.Type == event.TeamSubTeamEvent || at.Type == event.TeamMemberEvent {
			var d struct {
				AgentName string          `json:"member_name"`
				Node      string          `json:"sub_team_node_name"`
				Agent     json.RawMessage `json:"event"`
				Team      json.RawMessage `json:"sub_team_event"`
			}
			require.NoError(t, json.Unmarshal(at.Data, &d))
			raw, route = append(d.Agent, d.Team...), append(route, d.AgentName+d.Node)
			at = event.Event{}
			require.NoError(t, json.Unmarshal(raw, &at))
		}
		name := strings.Join(route, "/")
		got[name] = append(got[name], string(raw))
	}
	for _, route := range l.agents {
		var own []string
		for _, e := range l.events[route] {
			own = append(own, string(e.Raw))
		}
		require.Equal(t, own, got[route], route)
		n += len(own)
	}
	return n
}

// agentsTruth requires that the statuses which the logs of teams tell of their agents are
// those that follow from what the agents did, at every event, and returns what the agents
// of the outermost team and below went through, by route.
func (l memberLogs) agentsTruth(t testing.TB) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, team := range l.teams {
		for name, got := range inside(t, l.events[team]) {
			route := strings.TrimPrefix(team+"/"+name, "/")
			if !slices.Contains(l.agents, route) {
				continue
			}
			status, runs := event.AgentUninitialized, map[string]bool{}
			for _, r := range got {
				var e event.Event
				require.NoError(t, json.Unmarshal(r.raw, &e))
				if r.status != [2]string{} {
					require.Equal(t, status, r.status[0], "%s, event %d", route, r.seq)
					status = r.status[1]
					all[route] = append(all[route], status)
				}
				if after, ok := event.StatusAfter(e); ok {
					require.Equal(t, after, status, "%s, event %d %s", route, r.seq, e.Type)
				}
				begunAndEnded(t, e, runs)
				require.Equal(t, len(runs) > 0, event.Working(status), "%s, event %d %s: %s, and these runs are on: %v", route, r.seq, e.Type, status, runs)
			}
		}
	}
	return all
}

// begunAndEnded keeps the active runs.
func begunAndEnded(t testing.TB, e event.Event, runs map[string]bool) {
	t.Helper()
	switch e.Type {
	case event.RunStarted:
		runs[dataOf[event.RunStartedData](t, e).RunID] = true
	case event.RunCompleted:
		delete(runs, dataOf[event.RunCompletedData](t, e).RunID)
	case event.RunFailed:
		delete(runs, dataOf[event.RunFailedData](t, e).RunID)
	case event.RunCancelled:
		delete(runs, dataOf[event.RunCancelledData](t, e).RunID)
	}
}

// foldedTeam is what a team is doing, by its log.
type foldedTeam struct {
	status string                 // empty: it starts
	open   map[string]bool        // messages that were accepted, until their member has them
	runs   map[string]bool        // active runs of agents
	teams  map[string]*foldedTeam // nested ones
	paused bool
	ended  bool
}

func newFoldedTeam() *foldedTeam {
	return &foldedTeam{open: map[string]bool{}, runs: map[string]bool{}, teams: map[string]*foldedTeam{}}
}

// working reports whether a member works, or is about to, at any depth.
func (f *foldedTeam) working() bool {
	for _, nested := range f.teams {
		if nested.working() {
			return true
		}
	}
	return len(f.runs) > 0 || len(f.open) > 0 && !f.paused
}

// truthful reports whether the team says that it is running if a member works, and only then,
// or while a nested team still says so.
func (f *foldedTeam) truthful() bool {
	running, may := f.status == event.TeamRunning, f.working()
	for _, nested := range f.teams {
		may = may || nested.status == event.TeamRunning
	}
	return f.ended || f.status == "" || (running || !f.working()) && (may || !running)
}

func (f *foldedTeam) apply(t testing.TB, e event.Event) {
	t.Helper()
	var inner event.Event
	switch e.Type {
	case event.TeamStatus:
		f.status = dataOf[event.TeamStatusData](t, e).NewStatus
	case event.TeamMessage:
		f.open[dataOf[event.TeamMessageData](t, e).MessageID] = true
	case event.TeamMessageDropped:
		delete(f.open, dataOf[event.TeamMessageDroppedData](t, e).MessageID)
	case event.TeamPauseBegun, event.TeamResumed:
		f.paused = e.Type == event.TeamPauseBegun
	case event.TeamClosing:
		f.ended = true
	case event.TeamMemberEvent:
		require.NoError(t, json.Unmarshal(dataOf[event.TeamMemberEventData](t, e).Event, &inner))
		f.agent(t, inner)
	case event.TeamSubTeamEvent:
		d := dataOf[event.TeamSubTeamEventData](t, e)
		require.NoError(t, json.Unmarshal(d.SubTeamEvent, &inner))
		if f.teams[d.SubTeamNodeName] == nil {
			f.teams[d.SubTeamNodeName] = newFoldedTeam()
		}
		f.teams[d.SubTeamNodeName].apply(t, inner)
		if inner.Type == event.TeamMessage {
			delete(f.open, dataOf[event.TeamMessageData](t, inner).MessageID)
		}
	}
}

func (f *foldedTeam) agent(t testing.TB, e event.Event) {
	t.Helper()
	switch e.Type {
	case event.MessageReceived:
		d := dataOf[event.MessageReceivedData](t, e)
		delete(f.open, d.MessageID)
		f.runs[d.RunID] = true
	case event.MessageRefused:
		delete(f.open, dataOf[event.MessageRefusedData](t, e).MessageID)
	default:
		begunAndEnded(t, e, f.runs)
	}
}

// teamsTruth requires that every team says that it is running exactly when a member has
// something to do: whenever what it says is not so, the next event of its log sets it
// right, or makes it so; before it, the board may be told what came of a run. It returns how often that was compared.
func (l memberLogs) teamsTruth(t testing.TB) (compared int) {
	t.Helper()
	for _, team := range l.teams {
		f, wrong := newFoldedTeam(), ""
		for _, e := range l.events[team] {
			f.apply(t, e.Event)
			if compared++; wrong != "" && !f.truthful() {
				require.Equal(t, event.BoardUpdated, e.Type, "%q: %s", team, wrong) // the outcome of a run comes before the status
			}
			if wrong = ""; !f.truthful() {
				wrong = fmt.Sprintf("after event %d (%s) it says %s, and on are %v, open %v", e.Sequence, event.Unwrap(e.Event).Type, f.status, f.runs, f.open)
			}
		}
		require.Empty(t, wrong, "%q", team)
	}
	return compared
}
