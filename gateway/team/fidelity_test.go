package team_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/gateway/team"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// stored returns an event of an agent's log with data of its type.
func stored(t testing.TB, r *rapid.T) event.Event {
	t.Helper()
	info := rapid.SampledFrom(event.Catalogue).Filter(func(i event.Info) bool {
		return i.Type != event.TeamMemberEvent && i.Type != event.TeamSubTeamEvent
	}).Draw(r, "type")
	n, text := rapid.IntRange(0, 5).Draw(r, "n"), rapid.String().Draw(r, "text")
	return event.Event{
		SpecVersion: event.SpecVersion, ID: "a" + strconv.Itoa(n), Source: "worker", Type: info.Type, Subject: "default.member.agent-1",
		Time: dialecttest.Now, Sequence: 3, Data: dialecttest.Filled(t, info, text, `{"k":`+strconv.Quote("x")+`}`, n),
	}
}

// envelope is as much of an envelope as the tests look at.
type envelope struct {
	EventID string `json:"event_id"`
	Source  string `json:"event_source_type"`
	Data    struct {
		AgentName    string          `json:"agent_name"`
		OldStatus    string          `json:"old_status"`
		AgentEvent   json.RawMessage `json:"agent_event"`
		Node         string          `json:"sub_team_node_name"`
		SubTeamEvent json.RawMessage `json:"sub_team_event"`
	} `json:"data"`
}

// TestANestedEventIsTheAgentsOwn: whatever event of a member is in the log of a team, at
// any depth, the envelope holds the very bytes that a socket of the agent is sent, and
// around them those that a socket of the nested team is sent.
func TestANestedEventIsTheAgentsOwn(t *testing.T) {
	teams, agents := bound(t, team.Teams(), "envelope"), bound(t, team.Agents(), "envelope")
	rapid.Check(t, func(r *rapid.T) {
		e := stored(t, r)
		own := map[string]bool{}
		for _, f := range agents.Encode(e) {
			own[string(f)] = true
		}
		after, changes := event.StatusAfter(e)
		if !rapid.Bool().Draw(r, "changed") {
			after, changes = "", false
		}
		depth := rapid.IntRange(1, 4).Draw(r, "depth")
		outer := dialecttest.Nest(t, e, depth, after)
		outer.Subject, outer.Sequence = teamLog.Name(), 99
		shown := 0
		for i, raw := range teams.Encode(outer) {
			var v envelope
			require.NoError(r, json.Unmarshal(raw, &v))
			if i > 0 {
				require.Equal(r, outer.ID+"."+strconv.Itoa(i), v.EventID)
			}
			for range depth - 1 {
				require.Equal(r, "node", v.Data.Node)
				raw = v.Data.SubTeamEvent
				v = envelope{}
				require.NoError(r, json.Unmarshal(raw, &v))
			}
			if v.Source != "AGENT" {
				continue // A plan or a status, which only a session or a team has.
			}
			require.Equal(r, "Coder", v.Data.AgentName)
			require.True(r, own[string(v.Data.AgentEvent)], "a socket of the agent is not sent %s", v.Data.AgentEvent)
			require.False(r, v.Data.OldStatus == "" && changes && v.isStatus(), "what it was before is lost")
			shown++
		}
		require.LessOrEqual(r, shown, len(own))
	})
}

func (v envelope) isStatus() bool {
	var e struct {
		Type string `json:"event_type"`
	}
	return json.Unmarshal(v.Data.AgentEvent, &e) == nil && e.Type == "agent_status_updated"
}

// TestANestedTeamsEventIsItsOwn: what the envelope of a team holds of a nested one is
// what a socket of that is sent.
func TestANestedTeamsEventIsItsOwn(t *testing.T) {
	codec := bound(t, team.Teams(), "envelope")
	rapid.Check(t, func(r *rapid.T) {
		e := stored(t, r)
		e.Subject = "default.team.sub-1"
		if rapid.Bool().Draw(r, "agent") {
			e = dialecttest.Nest(t, e, 1, rapid.SampledFrom([]string{"", event.AgentIdle}).Draw(r, "status"))
			e.Subject = "default.team.sub-1"
		}
		inner, err := json.Marshal(e)
		require.NoError(r, err)
		data, err := json.Marshal(event.TeamSubTeamEventData{SubTeamNodeName: "node", SubTeamID: "sub-1", Seq: e.Sequence, SubTeamEvent: inner})
		require.NoError(r, err)
		outer := event.Event{
			ID: "o", Type: event.TeamSubTeamEvent, Source: "team", Subject: teamLog.Name(), Time: dialecttest.Now, Sequence: 99, Data: data,
		}
		own, held := codec.Encode(e), codec.Encode(outer)
		require.Len(r, held, len(own))
		for i := range own {
			var v envelope
			require.NoError(r, json.Unmarshal(held[i], &v))
			require.Equal(r, "SUB_TEAM", v.Source)
			require.Equal(r, string(own[i]), string(v.Data.SubTeamEvent))
		}
	})
}

// TestStatusesAreToldOnce: in a team an agent's status is told where it has changed; on a
// socket of the agent wherever an event says it.
func TestStatusesAreToldOnce(t *testing.T) {
	teams, agents := bound(t, team.Teams(), ""), bound(t, team.Agents(), "")
	e := event.Event{ID: "e", Type: event.JobStarted, Subject: agentLog.Name(), Sequence: 4, Time: dialecttest.Now, Data: []byte(`{}`)}
	require.Len(t, agents.Encode(e), 1)
	require.Empty(t, teams.Encode(dialecttest.Nest(t, e, 2, "")))
	got := teams.Encode(dialecttest.Nest(t, e, 2, event.AgentProcessingInput))
	require.Len(t, got, 1)
	require.Contains(t, string(got[0]), `"old_status":"`+event.AgentProcessingInput+`"`)
	require.Contains(t, string(got[0]), `"member_route_key":"node/Coder"`)
}

// TestWhomARespondIsFor: a client that names the leaf of a nested team, as the original
// does, is understood, because the call says whose it is.
func TestWhomARespondIsFor(t *testing.T) {
	for kind, want := range map[id.Kind][2]string{
		id.KindTeam: {"call_id", "a/b"}, id.KindMember: {"call_id", ""}, id.KindSession: {"input_id", ""}, id.KindTask: {"input_id", ""},
	} {
		in := inbound()
		in.Kind = kind
		intents, err := bound(t, team.Teams(), "").Decode([]byte(`{"type":"DENY_TOOL","payload":{"invocation_id":"c","agent_name":"b","target_member_path":["a","b"]}}`), in)
		require.NoError(t, err)
		require.Len(t, intents, 1)
		answer, err := json.Marshal(intents[0].Data)
		require.NoError(t, err)
		require.Contains(t, string(answer), `"`+want[0]+`":"c"`)
		require.Equal(t, want[1], intents[0].Member, "%s", kind)
	}
}
