package gateway_test

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func exportOf(l subject.Log) string {
	return fmt.Sprintf("/api/v1/logs/%s/%s/export", l.Kind, l.Entity)
}

// saved returns the events of an export.
func (r *rig) saved(path string, header ...string) (seqs []uint64) {
	r.t.Helper()
	status, body, head := r.get(path, header...)
	require.Equal(r.t, http.StatusOK, status, body)
	require.Equal(r.t, "application/jsonl", head.Get("Content-Type"))
	require.Equal(r.t, "no-store", head.Get("Cache-Control"))
	kind, with, err := mime.ParseMediaType(head.Get("Content-Disposition"))
	require.NoError(r.t, err)
	require.Equal(r.t, "attachment", kind)
	require.Regexp(r.t, `^session-\S+\.jsonl$`, with["filename"])
	for line := range strings.Lines(body) {
		require.True(r.t, strings.HasSuffix(line, "\n"), "each line ends")
		var e event.Event
		require.NoError(r.t, json.Unmarshal([]byte(line), &e))
		seqs = append(seqs, e.Sequence)
	}
	return seqs
}

// TestExportsHoldALog of more than one batch whole and in order, or up to an event.
func TestExportsHoldALog(t *testing.T) {
	t.Parallel()
	r := start(t)
	l := r.session("default", "one")
	const n = 30
	for range n {
		r.answers(l, strings.Repeat("<>", 20_000)) // 1.2 MB together
	}
	want := make([]uint64, 0, n+2)
	for seq := uint64(1); len(want) < cap(want); seq++ {
		want = append(want, seq)
	}
	all := r.saved(exportOf(l))
	require.Equal(t, want[:len(all)], all)
	require.GreaterOrEqual(t, len(all), n+1)
	require.Equal(t, want[:7], r.saved(exportOf(l)+"?until=7"))
	require.Len(t, r.saved(exportOf(l)+"?types=run.completed"), n+1, "that of the session, too")
	for bad, status := range map[string]int{"?until=9999": 422, "?until=x": 422, "?types=nothing": 422} {
		got, body, _ := r.get(exportOf(l) + bad)
		require.Equal(t, status, got, body)
	}
}

// TestExportsAreForThoseWhoSeeTheLog: the checks are those of the log.
func TestExportsAreForThoseWhoSeeTheLog(t *testing.T) {
	t.Parallel()
	r := start(t, authenticated(
		key("alice", "red", auth.RoleUser), key("otto", "red", auth.RoleOperator), key("vera", "red", auth.RoleViewer),
		key("eve", "blue", auth.RoleOperator), key("ann", "red", auth.RoleAgent),
	), func(_ *gateway.Config, d *gateway.Deps) {
		d.Access.Tenants = map[string]access.Settings{"red": {See: access.Tenant}}
	})
	l := r.session("red", "one")
	for who, want := range map[string]int{"alice": 200, "otto": 200, "vera": 200, "eve": 404, "ann": 403, "nobody": 401} {
		status, body, _ := r.get(exportOf(l), bearer(who)...)
		require.Equal(t, want, status, "%s: %s", who, body)
	}
	status, _, _ := r.get("/api/v1/logs/inbox/"+l.Entity.String()+"/export", bearer("alice")...)
	require.Equal(t, http.StatusNotFound, status)
}
