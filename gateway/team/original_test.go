package team_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/gateway/team"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
)

// flat is as much of a flattened message as these tests look at.
type flat struct {
	Type    string `json:"type"`
	Payload struct {
		ID        string `json:"id"`
		Delta     string `json:"delta"`
		Code      string `json:"code"`
		AgentName string `json:"agent_name"`
		Route     string `json:"member_route_key"`
		Scope     string `json:"event_scope"`
		Node      string `json:"sub_team_node_name"`
	} `json:"payload"`
}

func flattened(t testing.TB, frames ...[]byte) []flat {
	t.Helper()
	out := make([]flat, 0, len(frames))
	for _, raw := range frames {
		var f flat
		require.NoError(t, json.Unmarshal(raw, &f))
		dialecttest.Fits(t, wire.Schema, f.Type, raw)
		out = append(out, f)
	}
	return out
}

// told encodes an event of a log.
func told(t testing.TB, codec dialect.Codec, subject string, d event.Data) []flat {
	t.Helper()
	raw, err := json.Marshal(d)
	require.NoError(t, err)
	return flattened(t, codec.Encode(event.Event{
		ID: "e", Type: d.EventType(), Subject: subject, Sequence: 7, Time: dialecttest.Now, Data: raw,
	})...)
}

func typesOf(frames []flat) string {
	var names []string
	for _, f := range frames {
		if f.Type != wire.AgentStatus {
			names = append(names, f.Type)
		}
	}
	return strings.Join(names, " ")
}

// TestASegmentBeginsWithItsText: the segment of a message is shown from its first part on,
// and one without a part not at all. Logs that do not say which part is the first are shown
// as before.
func TestASegmentBeginsWithItsText(t *testing.T) {
	codec := bound(t, team.Agents(), "")
	planning := event.Part{Stage: event.StagePlanning, JobID: "w"}
	for _, c := range []struct {
		data event.Data
		want string
	}{
		{event.MessageStartedData{MessageID: "m", Waits: true}, ""},
		{event.MessageDeltaData{MessageID: "m", Text: "a", Begins: true}, "SEGMENT_START SEGMENT_CONTENT"},
		{event.MessageDeltaData{MessageID: "m", Text: "b"}, "SEGMENT_CONTENT"},
		{event.MessageCompletedData{MessageID: "m", Content: "ab"}, "SEGMENT_END ASSISTANT_COMPLETE"},
		{event.MessageDiscardedData{MessageID: "m"}, "SEGMENT_END"},

		{event.MessageCompletedData{MessageID: "m", Silent: true}, "ASSISTANT_COMPLETE"},
		{event.MessageCompletedData{MessageID: "m", Content: "ab", Silent: true}, "SEGMENT_START SEGMENT_CONTENT SEGMENT_END ASSISTANT_COMPLETE"},
		{event.MessageCompletedData{MessageID: "m", Content: "{}", Silent: true, Part: planning}, ""},
		{event.MessageDiscardedData{MessageID: "m", Silent: true}, ""},

		{event.MessageStartedData{MessageID: "m"}, "SEGMENT_START"},
	} {
		require.Equal(t, c.want, typesOf(told(t, codec, agentLog.Name(), c.data)), "%T %+v", c.data, c.data)
	}
}

// TestAdditionsHaveToBeAskedFor: what the client of the original does not know is sent to
// those that ask for it, and changes nothing else of what they are sent.
func TestAdditionsHaveToBeAskedFor(t *testing.T) {
	without, with := bound(t, team.Teams(), ""), bound(t, team.Teams(), withAdditions)
	rapid.Check(t, func(r *rapid.T) {
		e := dialecttest.Nest(t, stored(t, r), rapid.IntRange(0, 3).Draw(r, "depth"), event.AgentIdle)
		var want []string
		for _, f := range flattened(t, with.Encode(e)...) {
			nested := f.Type == wire.TeamStatus && f.Payload.Node != ""
			if f.Type != wire.MessageAccepted && f.Type != wire.ToolAutoExecuting && !nested {
				want = append(want, f.Type)
			}
		}
		var got []string
		for _, f := range flattened(t, without.Encode(e)...) {
			got = append(got, f.Type)
			team := f.Type == wire.TeamStatus || f.Type == wire.TaskPlanEvent
			require.Equal(r, team, f.Payload.Scope == wire.TeamScoped, "the team has statuses and a board, and all else is a member's: %+v", f)
		}
		require.Equal(r, want, got)
	})
	for _, d := range []team.Dialect{team.Teams(), team.Agents()} {
		_, err := d.Bind(map[string][]string{"additions": {"yes"}})
		require.ErrorContains(t, err, "additions")
	}
}

// TestErrorsOfATeamAreAMembers: what goes wrong with a team as a whole is said in the name
// of a member, because the client of the original shows nothing else.
func TestErrorsOfATeamAreAMembers(t *testing.T) {
	codec, more := bound(t, team.Teams(), ""), bound(t, team.Teams(), withAdditions)
	dropped := event.TeamMessageDroppedData{Member: "Coder", Reason: string(fault.QueueFull)}
	refused := event.CommandRefusedData{Code: string(fault.MemberNotFound), AgentName: "Lead"}
	for _, c := range []struct {
		who  string
		says func(*team.Codec) []flat
	}{
		{"Coder", func(c *team.Codec) []flat { return told(t, c, teamLog.Name(), dropped) }},
		{"team", func(c *team.Codec) []flat { return told(t, c, teamLog.Name(), event.ErrorData{Code: "INTERNAL"}) }},
		{"Lead", func(c *team.Codec) []flat {
			return flattened(t, c.FailBy("Lead", fault.New(fault.RateLimited), dialecttest.Now))
		}},
		{"Lead", func(c *team.Codec) []flat {
			raw, err := json.Marshal(refused)
			require.NoError(t, err)
			return flattened(t, c.Encode(event.Event{Type: event.CommandRefused, Subject: teamLog.Name(), Time: dialecttest.Now, Data: raw})...)
		}},
	} {
		got := c.says(codec)
		require.Len(t, got, 1)
		require.Equal(t, []string{wire.Error, c.who, c.who, wire.MemberScoped}, []string{got[0].Type, got[0].Payload.AgentName, got[0].Payload.Route, got[0].Payload.Scope})
		got = c.says(more)
		require.Len(t, got, 1)
		require.Equal(t, []string{wire.Error, "", wire.TeamScoped}, []string{got[0].Type, got[0].Payload.AgentName, got[0].Payload.Scope})
	}
	plain := flattened(t, codec.Fail(fault.New(fault.TeamNotFound), dialecttest.Now))
	require.Empty(t, plain[0].Payload.Scope, "before the team is known an error has a code and a text")
	nested := told(t, codec, teamLog.Name(), event.TeamSubTeamEventData{
		SubTeamNodeName: "desk", SubTeamID: "sub-1", Seq: 1, SubTeamEvent: raw(t, event.Event{
			ID: "i", Type: event.TeamMessageDropped, Subject: "default.team.sub-1", Sequence: 1, Time: dialecttest.Now, Data: raw(t, dropped),
		}),
	})
	require.Equal(t, "desk/Coder", nested[0].Payload.Route)
}

func raw(t testing.TB, v any) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return b
}
