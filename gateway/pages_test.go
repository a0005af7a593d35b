package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/auth"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
)

// TestPagesOfSessions hold as many as were asked for, and all together each session once, also when one changes
// in between.
func TestPagesOfSessions(t *testing.T) {
	tenant := unique() // without the sessions of an earlier run
	r := start(t, authenticated(key("alice", tenant, auth.RoleOperator)))
	r.indexed = true
	want := map[string]bool{}
	first := r.session(tenant, "one")
	want[first.Entity.String()] = true
	for i := range 6 {
		want[r.session(tenant, fmt.Sprint(i)).Entity.String()] = true
	}
	seen := map[string]int{}
	before, pages := "", 0
	for {
		status, body, _ := r.get("/api/v1/sessions?limit=2&before="+url.QueryEscape(before), bearer("alice")...)
		require.Equal(t, http.StatusOK, status, body)
		var page wire.SessionList
		require.NoError(t, json.Unmarshal([]byte(body), &page))
		require.LessOrEqual(t, len(page.Sessions), 2)
		for _, s := range page.Sessions {
			seen[s.SessionID]++
		}
		if pages++; pages == 1 {
			r.answers(first, "it is the newest now, on a page that was read")
		}
		if !page.More {
			require.Empty(t, page.Next)
			break
		}
		before = page.Next
	}
	require.Equal(t, 3, pages)
	delete(want, first.Entity.String())
	for id := range want {
		require.Equal(t, 1, seen[id], id)
	}
	for _, bad := range []string{
		"before=%21", "before=0", "before=-1", "limit=0", "limit=1001", "limit=x", "status=x", "state=x", "since=x", "until=x",
		"q=" + strings.Repeat("x", 201),
	} {
		status, body, _ := r.get("/api/v1/sessions?"+bad, bearer("alice")...)
		require.Equal(t, http.StatusUnprocessableEntity, status, "%s: %s", bad, body)
	}
}

// TestPagesOfAgents take as many answers of the task service as they need; a list over a socket has a frame for each.
func TestPagesOfAgents(t *testing.T) {
	r := startSwarm(t)
	for i := range 20 {
		r.tasks.agents = append(r.tasks.agents, wirecmd.Participant{Name: fmt.Sprintf("%05d", i)})
	}
	var got []string
	before := ""
	for {
		status, body, _ := r.get("/api/v1/agents?limit=8&before=" + before)
		require.Equal(t, http.StatusOK, status, body)
		var page wire.AgentList
		require.NoError(t, json.Unmarshal([]byte(body), &page))
		require.Equal(t, page.More, page.Next != "")
		require.Len(t, page.Agents, min(8, 20-len(got)))
		for _, a := range page.Agents {
			got = append(got, a.Name)
		}
		if before = page.Next; before == "" {
			break
		}
	}
	require.Len(t, got, 20)
	require.IsIncreasing(t, got)

	c, _ := r.join(pathClient, "")
	var shown []string
	after, frames := "", 0
	for ; frames == 0 || after != ""; frames++ {
		c.sendASP("client.agent.list.request", "list", map[string]any{"after": after, "limit": 2})
		page := c.expectASP("client.agent.list.response").Content
		for _, a := range page.Agents {
			shown = append(shown, a.Name)
		}
		after = page.Next
	}
	require.Equal(t, got, shown)
	require.Equal(t, 10, frames)
	for _, bad := range []string{"before=%21", "limit=0", "limit=1001"} {
		status, body, _ := r.get("/api/v1/agents?" + bad)
		require.Equal(t, http.StatusUnprocessableEntity, status, "%s: %s", bad, body)
		require.Contains(t, body, `"field":"`+strings.Split(bad, "=")[0]+`"`)
	}
}

// TestPagesAreBoundedInBytes however large the events are.
func TestPagesAreBoundedInBytes(t *testing.T) {
	r := start(t)
	l := r.session("default")
	const n = 25
	for range n {
		r.answers(l, strings.Repeat("x", 200<<10))
	}
	after, total := "0", 0
	for pages := 1; ; pages++ {
		status, body, _ := r.get("/api/v1/sessions/" + l.Entity.String() + "/events?after=" + after)
		require.Equal(t, http.StatusOK, status)
		require.LessOrEqual(t, len(body), 4<<20+1<<10)
		var page wire.EventPage
		require.NoError(t, json.Unmarshal([]byte(body), &page))
		total += len(page.Events)
		if !page.More {
			require.Equal(t, 2, pages)
			break
		}
		after = page.Next
	}
	require.Equal(t, n+1, total)
}
