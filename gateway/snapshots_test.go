package gateway_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/snapshot"
	"github.com/waggle-dev/waggle/internal/auth"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func snapshotPath(l subject.Log, at any) string {
	return fmt.Sprintf("/api/v1/logs/%s/%s/snapshot?at=%v", l.Kind, l.Entity, at)
}

// eventsOf reads a log as the API shows it.
func (r *rig) eventsOf(l subject.Log) (events []event.Event) {
	r.t.Helper()
	for after := "0"; ; {
		status, body, _ := r.get(fmt.Sprintf("/api/v1/logs/%s/%s/events?limit=1000&after=%s", l.Kind, l.Entity, after))
		require.Equal(r.t, http.StatusOK, status, body)
		var page wire.LogPage
		require.NoError(r.t, json.Unmarshal([]byte(body), &page))
		for _, raw := range page.Events {
			var e event.Event
			require.NoError(r.t, json.Unmarshal(raw, &e))
			events = append(events, e)
		}
		if after = page.Next; !page.More {
			return events
		}
	}
}

// snapshotOf asks for a snapshot, and holds it to the fold of the events that it is made of.
func (r *rig) snapshotOf(l subject.Log, events []event.Event, at int) wire.Snapshot {
	r.t.Helper()
	status, body, _ := r.get(snapshotPath(l, at))
	require.Equal(r.t, http.StatusOK, status, body)
	var got wire.Snapshot
	require.NoError(r.t, json.Unmarshal([]byte(body), &got))
	f := snapshot.New(l.Kind)
	for _, e := range events[got.Base-1 : at] {
		f.Take(e)
	}
	want, err := snapshot.Canonical(f.Snapshot(l.Entity))
	require.NoError(r.t, err)
	require.Equal(r.t, string(want), body, "at %d", at)
	return got
}

// TestASnapshotIsTheFoldOfTheLog at each of its events.
func TestASnapshotIsTheFoldOfTheLog(t *testing.T) {
	t.Parallel()
	r := start(t)
	l := r.readable()
	events := r.eventsOf(l)
	for at := range events {
		s := r.snapshotOf(l, events, at+1)
		require.EqualValues(t, 1, s.Base)
		require.EqualValues(t, at+1, s.Seq)
		require.Equal(t, string(events[at].Type), s.Type)
	}
	status, body, _ := r.get("/api/v1/logs/session/" + l.Entity.String() + "/snapshot")
	require.Equal(t, http.StatusOK, status)
	_, newest, _ := r.get(snapshotPath(l, len(events)))
	require.Equal(t, newest, body)
}

// TestASnapshotIsAskedForOnce: a client that has it learns that it is the same, and a longer log has others.
func TestASnapshotIsAskedForOnce(t *testing.T) {
	t.Parallel()
	r := start(t)
	l := r.readable()
	_, _, h := r.get(snapshotPath(l, 3))
	tag := h.Get("ETag")
	require.NotEmpty(t, tag)
	require.Contains(t, h.Get("Cache-Control"), "private")
	for _, header := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
		status, body, h := r.get(snapshotPath(l, 3), "If-None-Match", header)
		require.Equal(t, http.StatusNotModified, status, header)
		require.Empty(t, body)
		require.Equal(t, tag, h.Get("ETag"))
	}
	status, _, h := r.get(snapshotPath(l, 4), "If-None-Match", tag)
	require.Equal(t, http.StatusOK, status)
	require.NotEqual(t, tag, h.Get("ETag"))
}

// TestSnapshotsOfLongLogs are those of folds from their base, whichever was asked for before. A conversation begins where
// nothing before matters.
func TestSnapshotsOfLongLogs(t *testing.T) {
	t.Parallel()
	r := start(t)
	l := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal(unique())}
	r.happens(l, event.SessionCreatedData{Dialect: "orbit"})
	run := func(name string, deltas int) {
		r.happens(l, event.MessageReceivedData{MessageID: "m" + name, RunID: name, Content: "say"}, event.RunStartedData{RunID: name})
		for i := range deltas {
			r.happens(l, event.MessageDeltaData{MessageID: "a" + name, RunID: name, Text: fmt.Sprintf("%d ", i)})
		}
		r.happens(l, event.RunCompletedData{RunID: name})
	}
	for i := range 4 {
		run(fmt.Sprintf("s%d", i), 30)
	}
	run("long", 900)
	run("last", 5)
	events := r.eventsOf(l)
	require.Greater(t, len(events), 1000)
	for i := range 40 {
		at := 1 + rand.IntN(len(events))
		s := r.snapshotOf(l, events, at)
		base := events[s.Base-1]
		if at <= 500 {
			require.EqualValues(t, 1, s.Base)
		}
		require.True(t, s.Base == 1 || base.Type == event.MessageReceived, "%d: %d begins with %s", i, at, base.Type)
	}
	require.Equal(t, []string{"long"}, r.snapshotOf(l, events, len(events)-9).Conversation.Active)
	require.EqualValues(t, len(events)-7, r.snapshotOf(l, events, len(events)).Base, "the last run")
}

// TestSnapshotsAreRefused to those who do not see the log, of logs that have none, and at places that do not exist.
func TestSnapshotsAreRefused(t *testing.T) {
	t.Parallel()
	tenant := unique()
	r := start(t, authenticated(
		key("ann", tenant, auth.RoleUser), key("op", tenant, auth.RoleOperator), key("vera", tenant, auth.RoleViewer),
		key("ben", tenant, auth.RoleUser), key("eve", unique(), auth.RoleOperator),
	))
	firsts := map[id.Kind]event.Data{
		id.KindSession: event.SessionCreatedData{Dialect: "orbit", Principal: "who-ann"},
		id.KindMember:  event.MemberCreatedData{MemberID: "x", Principal: "who-ann"},
		id.KindTeam:    event.TeamCreatedData{TeamID: "x", Principal: "who-ann"},
		id.KindTask:    event.TaskCreatedData{TaskHead: event.TaskHead{TaskID: "x"}, Principal: "who-ann"},
	}
	for kind, first := range firsts {
		l := subject.Log{Tenant: mustTenant(t, tenant), Kind: kind, Entity: id.EntityFromExternal(unique())}
		require.NoError(t, r.append(l, unique(), first))
		for who, want := range map[string]int{"ann": 200, "op": 200, "vera": 200, "eve": 404, "nobody": 401} {
			for _, header := range [][]string{bearer(who), append(bearer(who), "If-None-Match", "*")} {
				status, body, _ := r.get(snapshotPath(l, 1), header...)
				if want == http.StatusOK && len(header) > 2 {
					require.Equal(t, http.StatusNotModified, status)
					continue
				}
				require.Equal(t, want, status, "%s %s: %s", kind, who, body)
			}
		}
		head, _, _ := r.get(fmt.Sprintf("/api/v1/logs/%s/%s/head", kind, l.Entity), bearer("ben")...)
		status, _, _ := r.get(snapshotPath(l, 1), bearer("ben")...)
		require.Equal(t, head, status, "a colleague sees the snapshot if they see the log: %s", kind)
		for _, at := range []string{"0", "2", "x", "-1", ""} {
			status, body, _ := r.get(snapshotPath(l, at), bearer("ann")...)
			require.NotEqual(t, http.StatusOK, status, "%s: %s", at, body)
			require.Less(t, status, 500)
		}
	}
	l := subject.Log{Tenant: mustTenant(t, tenant), Kind: id.KindCall, Entity: id.EntityFromExternal(unique())}
	require.NoError(t, r.append(l, unique(), event.CallStartedData{CallID: "x", Principal: "who-ann"}))
	status, body, _ := r.get(snapshotPath(l, 1), bearer("ann")...)
	require.Equal(t, http.StatusUnprocessableEntity, status, body)
}
