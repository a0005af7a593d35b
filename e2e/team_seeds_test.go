package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/proto-schemas/team"
)

// shape returns the paths of all members of a JSON value with the kinds of their values,
// but for those below the path leave.
func shape(t testing.TB, raw []byte, leave string) map[string]string {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal(raw, &v), "%s", raw)
	out := map[string]string{}
	var walk func(at string, v any)
	walk = func(at string, v any) {
		if at != "" {
			out[at] = fmt.Sprintf("%T", v)
		}
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				if at != leave || leave == "" {
					walk(strings.TrimPrefix(at+"."+name, "."), member)
				}
			}
		case []any:
			for _, item := range v {
				walk(at+"[]", item)
			}
		}
	}
	walk("", v)
	return out
}

// likeSeed requires that a frame has every member of an example of the protocol's
// description, of the same kind, but for those that are left out where they are null, and
// besides exactly these.
func likeSeed(t testing.TB, example, frame, leave string, besides ...string) {
	t.Helper()
	raw, err := team.Examples.ReadFile("examples/" + example + ".json")
	require.NoError(t, err)
	want, got := shape(t, raw, leave), shape(t, []byte(frame), leave)
	var more []string
	for path, kind := range got {
		if want[path] == "" {
			more = append(more, path)
			continue
		}
		require.Equal(t, want[path], kind, "%s: %s of %s", example, path, frame)
	}
	slices.Sort(more)
	require.Equal(t, besides, more, "%s: %s", example, frame)
	for path, kind := range want {
		require.True(t, got[path] != "" || kind == "<nil>", "%s: %s is missing in %s", example, path, frame)
	}
}

// seeds compares frames of the run with the examples of the protocol's description: an
// event of each source, of a nested team at each depth, and what clients finally get.
func (p *teamScenario) seeds() {
	const nested = "data.sub_team_event"
	first := func(c *client.Team, what string, ok func(client.TeamFrame) bool) string {
		p.t.Helper()
		return c.Until(what, ok).Raw
	}
	source := func(source, route, holds string) func(client.TeamFrame) bool {
		return func(f client.TeamFrame) bool {
			return f.Source == source && f.Route() == route && strings.Contains(f.Raw, holds)
		}
	}
	text := []string{"data.agent_event.data.segment_id", "data.agent_event.data.segment_type", "data.agent_event.sequence", "sequence"}
	board := []string{
		"data.tasks[].assignee_name", "data.tasks[].dependencies", "data.tasks[].dependencies[]", "data.tasks[].file_deliverables",
		"data.tasks[].file_deliverables[]", "data.tasks[].file_deliverables[].author_agent_name", "data.tasks[].file_deliverables[].file_path",
		"data.tasks[].file_deliverables[].summary", "data.tasks[].status", "data.tasks[].task_id", "data.tasks[].task_name", "data.team_id", "sequence",
	}
	teamEvent := first(p.deep, "a team's event", source("TEAM", "", `"data":{"new_status":"IDLE","old_status":"STARTING"}`))
	likeSeed(p.t, "AgentTeamStreamEvent-team", teamEvent, "", "sequence")
	failed := first(p.deep, "a team's error", source("TEAM", "", `"new_status":"ERROR"`))
	likeSeed(p.t, "AgentTeamStreamEvent-team", strings.Replace(failed, `"error_message":"`, `"reason":"`, 1), "", "data.reason", "sequence")
	likeSeed(p.t, "AgentTeamStreamEvent-agent", first(p.deep, "an agent's text", source("AGENT", "Editor", `"SEGMENT_CONTENT"`)), "", text...)
	likeSeed(p.t, "AgentTeamStreamEvent-task_plan", first(p.deep, "the board", source("TASK_PLAN", "", `"tasks":`)), "", board...)
	for _, route := range []string{chief, clerk} {
		raw := first(p.deep, "a nested agent's text", source("SUB_TEAM", route, `"SEGMENT_CONTENT","segment_id"`))
		for depth := strings.Count(route, "/"); depth > 0; depth-- {
			likeSeed(p.t, "AgentTeamStreamEvent-sub_team", raw, nested, "sequence")
			raw, _ = peeled(raw, 1, false)
		}
		likeSeed(p.t, "AgentTeamStreamEvent-agent", raw, "", text...)
	}
	inner, ok := peeled(first(p.deep, "a nested team's event", source("SUB_TEAM", "desk", `"new_status":"IDLE"`)), 1, false)
	require.True(p.t, ok)
	likeSeed(p.t, "AgentTeamStreamEvent-team", inner, "", "sequence")
	p.finalForm()
	p.times()
}

// finalForm compares what clients get with the last example.
func (p *teamScenario) finalForm() {
	const stream = "payload.team_stream_event_envelope"
	own := []string{"payload.event_scope", "payload.member_route_key"}
	for route, besides := range map[string][]string{"Editor": append(own, stream), clerk: append(own, "payload.sub_team_node_name", stream)} {
		f := p.flat.Until("a text", func(f client.TeamFrame) bool {
			return f.Type == team.SegmentContent && f.Route() == route && f.Text("segment_type") == "text"
		})
		likeSeed(p.t, "SEGMENT_CONTENT", f.Raw, stream, besides...)
		require.Equal(p.t, route[strings.LastIndexByte(route, '/')+1:], f.Text("agent_name"))
	}
}

// times requires that every event of the stream has an id of its own and a time.
func (p *teamScenario) times() {
	ids := map[string]bool{}
	for _, f := range p.deep.Frames() {
		var e struct {
			ID string    `json:"event_id"`
			At time.Time `json:"timestamp"`
		}
		require.NoError(p.t, json.Unmarshal([]byte(f.Raw), &e), f.Raw)
		require.False(p.t, ids[e.ID] || e.At.IsZero(), f.Raw)
		ids[e.ID] = true
	}
}
