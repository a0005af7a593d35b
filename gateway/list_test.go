package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/auth"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// walked returns all sessions that the query lists for a key, and the total of the last page.
func (r *rig) walked(who string, q url.Values) (out []string, total *int) {
	r.t.Helper()
	for {
		status, body, _ := r.get("/api/v1/sessions?"+q.Encode(), bearer(who)...)
		require.Equal(r.t, http.StatusOK, status, body)
		var page wire.SessionList
		require.NoError(r.t, json.Unmarshal([]byte(body), &page))
		for _, s := range page.Sessions {
			out = append(out, s.SessionID)
		}
		total = page.Total
		if !page.More {
			require.Empty(r.t, page.Next)
			return out, total
		}
		q.Set("before", page.Next)
	}
}

// TestListsAreFiltered by what the index holds. A page may be short and still have a next one, and who sees only their own
// sessions does not learn how many others exist.
func TestListsAreFiltered(t *testing.T) {
	tenant := unique()
	r := startAll(t, authenticated(key("ann", tenant, auth.RoleUser), key("ben", tenant, auth.RoleUser), key("op", tenant, auth.RoleOperator)))
	r.indexed = true
	const n = 1200
	called, started := event.ToolCalledData{RunID: "r", CallID: "c", Tool: "pay"}, event.ToolStartedData{RunID: "r", CallID: "c"}
	ends := [][]event.Data{
		{event.RunCompletedData{RunID: "r"}},
		{event.RunCompletedData{RunID: "r", Outcome: "partial_success"}},
		{event.RunCompletedData{RunID: "r", Outcome: "rejected"}},
		{event.RunFailedData{RunID: "r"}},
		{event.RunCancelledData{RunID: "r"}},
		{called, event.RunCancelledData{RunID: "r"}},          // which no tool has got
		{called, started, event.RunCancelledData{RunID: "r"}}, // while it ran
		{called, started, event.ToolUnknownData{RunID: "r", CallID: "c"}, event.RunCompletedData{RunID: "r"}},
		{called, started, event.ToolCompletedData{RunID: "r", CallID: "c"}, event.RunCompletedData{RunID: "r"}},
		{event.ToolCalledData{RunID: "r", CallID: "c", Tool: "read", Idempotent: true}, started, event.RunFailedData{RunID: "r"}},
	}
	begun := time.Now()
	for i := range n {
		l := subject.Log{Tenant: mustTenant(t, tenant), Kind: id.KindSession, Entity: id.EntityFromExternal(fmt.Sprint("s", i))}
		owner, dialect := "who-ben", "orbit"
		if i%100 == 0 && i < 300 {
			owner, dialect = "who-ann", "myagent"
		}
		require.NoError(t, r.append(l, unique(), event.SessionCreatedData{Dialect: dialect, Principal: owner}))
		if i == 100 {
			require.NoError(t, r.append(l, unique(), event.MessageReceivedData{MessageID: "m", RunID: "r", Content: "Where IS it?"}))
		}
		for j, end := range ends {
			if i == 150+j {
				require.NoError(t, r.append(l, unique(), event.MessageReceivedData{MessageID: "m", RunID: "r", Content: "ends"}))
				for _, d := range end {
					require.NoError(t, r.append(l, unique(), d))
				}
			}
		}
		if i == 200 {
			require.NoError(t, r.append(l, unique(), event.SessionClosedData{}))
		}
	}
	some := []string{"s200", "s100", "s0"}
	for name, c := range map[string]struct {
		who  string
		q    url.Values
		want []string
	}{
		"own":       {"ann", url.Values{}, some},
		"principal": {"op", url.Values{"principal": {"who-ann"}}, some},
		"dialect":   {"op", url.Values{"dialect": {"myagent"}, "limit": {"2"}}, some},
		"of others": {"ann", url.Values{"principal": {"who-ben"}}, nil},
		"status":    {"op", url.Values{"status": {"closed"}}, []string{"s200"}},
		"state":     {"op", url.Values{"state": {"running"}, "limit": {"1"}}, []string{"s100"}},
		"waiting":   {"op", url.Values{"state": {"waiting"}}, nil},
		"completed": {"op", url.Values{"state": {"completed"}}, []string{"s158", "s150"}},
		"partly":    {"op", url.Values{"state": {"partly"}}, []string{"s151"}},
		"failed":    {"op", url.Values{"state": {"failed"}}, []string{"s159", "s153"}},
		"cancelled": {"op", url.Values{"state": {"cancelled"}}, []string{"s155", "s154", "s152"}},
		"unknown":   {"op", url.Values{"state": {"unknown_outcome"}}, []string{"s157", "s156"}},
		"no run":    {"op", url.Values{"state": {"idle"}, "principal": {"who-ann"}}, []string{"s200", "s0"}},
		"q":         {"op", url.Values{"q": {"where is"}}, []string{"s100"}},
		"until":     {"op", url.Values{"until": {begun.Add(-time.Minute).Format(time.RFC3339)}}, nil},
	} {
		got, total := r.walked(c.who, c.q)
		require.Equal(t, c.want, got, name)
		if c.who == "op" {
			require.Equal(t, n, *total, name)
		} else {
			require.Nil(t, total, name)
		}
	}
	for who, seen := range map[string]int{"op": n, "ann": 3} { // one answer searches all, and says how many it could see
		status, body, _ := r.get("/api/v1/sessions?q=where+is&state=running", bearer(who)...)
		require.Equal(t, http.StatusOK, status, body)
		var page wire.SessionList
		require.NoError(t, json.Unmarshal([]byte(body), &page))
		require.Len(t, page.Sessions, 1)
		require.Equal(t, seen, page.Searched)
		require.False(t, page.More)
	}
	got, _ := r.walked("op", url.Values{"since": {begun.Add(-time.Minute).Format(time.RFC3339)}, "limit": {"60"}})
	require.Len(t, got, n)
	r.countsAndSummaries(n, begun)
}

// countsAndSummaries: counts are of what a principal sees, and a summary says what the list says.
func (r *rig) countsAndSummaries(n int, begun time.Time) {
	r.t.Helper()
	read := func(who, path string, want int, out any) {
		r.t.Helper()
		status, body, _ := r.get(path, bearer(who)...)
		require.Equal(r.t, want, status, body)
		if out != nil {
			require.NoError(r.t, json.Unmarshal([]byte(body), out))
		}
	}
	var counts wire.SessionCounts
	read("op", "/api/v1/session-counts", http.StatusOK, &counts)
	require.ElementsMatch(r.t, []wire.StateCount{
		{State: "running", Sessions: 1},
		{State: "completed", Sessions: 2},
		{State: "partly", Sessions: 1},
		{State: "failed", Sessions: 2},
		{State: "cancelled", Sessions: 3},
		{State: "unknown_outcome", Sessions: 2},
		{State: "idle", Sessions: n - 11},
	}, counts.States)
	require.Equal(r.t, n, counts.Searched)
	counts = wire.SessionCounts{}
	read("ann", "/api/v1/session-counts?since="+url.QueryEscape(begun.Add(-time.Minute).Format(time.RFC3339)), http.StatusOK, &counts)
	require.Equal(r.t, wire.SessionCounts{Searched: 3, States: []wire.StateCount{{State: "idle", Sessions: 2}, {State: "running", Sessions: 1}}}, counts)
	counts = wire.SessionCounts{}
	read("op", "/api/v1/session-counts?principal=who-ann&since="+url.QueryEscape(begun.Add(time.Hour).Format(time.RFC3339)), http.StatusOK, &counts)
	require.Equal(r.t, wire.SessionCounts{Searched: n, States: []wire.StateCount{}}, counts)
	read("op", "/api/v1/session-counts?since=yesterday", http.StatusUnprocessableEntity, nil)
	var one wire.SessionSummary
	read("ann", "/api/v1/sessions/s100/summary", http.StatusOK, &one)
	require.Equal(r.t, "running Where IS it?", one.State+" "+one.Question)
	read("ann", "/api/v1/sessions/s101/summary", http.StatusNotFound, nil)
	read("op", "/api/v1/sessions/none/summary", http.StatusNotFound, nil)
}
