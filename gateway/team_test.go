package gateway_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/gateway/dialect/team"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// streamed is a frame of the protocol of agent teams.
type streamed struct {
	Type    string `json:"type"`
	Payload struct {
		Code     string `json:"code"`
		Envelope struct {
			Sequence uint64 `json:"sequence"`
		} `json:"team_stream_event_envelope"`
	} `json:"payload"`
}

// stream opens a socket of a team and reads the frames of its log, which have a sequence.
func (r *rig) stream(l string, after uint64, last string) (frames []string, at []uint64) {
	r.t.Helper()
	c := r.open(pathTeams+l, fmt.Sprintf("after=%d", after))
	for {
		b, err := c.text()
		require.NoError(r.t, err)
		var f streamed
		require.NoError(r.t, json.Unmarshal(b, &f), "%s", b)
		if f.Type == "CONNECTED" || f.Payload.Envelope.Sequence == 0 {
			continue
		}
		frames, at = append(frames, string(b)), append(at, f.Payload.Envelope.Sequence)
		if strings.Contains(string(b), last) {
			c.leave()
			return frames, at
		}
	}
}

// The protocol of agent teams on real sockets: its frames have growing positions, and a client
// that resumes from any of them gets exactly the frames after it.
func TestTheProtocolOfTeams(t *testing.T) {
	r, d := startTeams(t, unlimited, func(_ *gateway.Config, dep *gateway.Deps) {
		dep.Routes = map[string]gateway.Route{
			"/ws/agent-team/{team_id}": gateway.Team(team.Teams()), "/ws/agent/{agent_id}": gateway.Team(team.Agents()), pathRuns: gateway.Team(team.Teams()),
			pathSessions: gateway.Multi(multiDialect{}),
		}
	})
	d.members = 0
	l := r.runLog(id.KindTeam, "default")
	part := event.MessageStartedData{MessageID: "m", RunID: "r", ExecutionID: "exec_x", Attempt: 1, Role: event.RoleAssistant}
	r.relay(l, "Coder", 1, event.RunStartedData{RunID: "r"})
	r.relay(l, "Coder", 2, part)
	r.relay(l, "Coder", 3, messageDelta("hello "))
	r.relay(l, "Coder", 4, messageDelta("world"))
	r.relay(l, "Coder", 5, event.MessageCompletedData{MessageID: "m", RunID: "r", ExecutionID: "exec_x", Attempt: 1, Role: event.RoleAssistant, Content: "hello world"})
	r.relay(l, "Coder", 6, event.ToolCalledData{CallID: "c1", RunID: "r", Tool: "read_file", Arguments: json.RawMessage(`{"path":"a"}`)})
	r.relay(l, "Coder", 7, messageDelta("the last"))
	all, at := r.stream(l.Entity.String(), 0, "the last")
	require.Greater(t, len(all), 8, "several frames come of one event")
	for i, position := range at {
		if i > 0 {
			require.Greater(t, position, at[i-1])
		}
		if i+1 < len(all) {
			rest, _ := r.stream(l.Entity.String(), position, "the last")
			require.Equal(t, all[i+1:], rest, "behind frame %d", i)
		}
	}
	c := r.open(pathTeams+"nobody", "")
	b, err := c.text()
	require.NoError(t, err)
	require.Contains(t, string(b), "TEAM_NOT_FOUND")
	c.closes(4004)
	t.Logf("%d frames of %d events", len(all), 8)
}
