package gateway_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// lines asks for a page and returns its events.
func (r *rig) lines(path string, header ...string) (events []event.Event) {
	r.t.Helper()
	status, body, head := r.get(path, append(header, "Accept", "application/jsonl")...)
	require.Equal(r.t, http.StatusOK, status, body)
	require.Equal(r.t, "application/jsonl", head.Get("Content-Type"))
	for line := range strings.Lines(body) {
		require.True(r.t, strings.HasSuffix(line, "\n"), "each line ends")
		var e event.Event
		require.NoError(r.t, json.Unmarshal([]byte(line), &e))
		events = append(events, e)
	}
	return events
}

// Pages have the rights and faults of streams.
func TestPagesThatAreRefused(t *testing.T) {
	t.Parallel()
	r := start(t, authenticated(key("alice", "acme"), key("bob", "globex"), key("robot", "acme", auth.RoleAgent)))
	l := r.session("acme", "one", "two", "three")
	refuses := func(status int, code, path string, header ...string) {
		t.Helper()
		got, body, head := r.get(path, append(header, "Accept", "application/jsonl")...)
		require.Equal(t, status, got, body)
		require.Equal(t, "application/problem+json", head.Get("Content-Type"))
		require.Contains(t, body, code)
	}
	refuses(http.StatusUnauthorized, "UNAUTHENTICATED", streamOf(l))
	refuses(http.StatusForbidden, "FORBIDDEN", streamOf(l), bearer("robot")...)
	refuses(http.StatusNotFound, "SESSION_NOT_FOUND", streamOf(l), bearer("bob")...)
	refuses(http.StatusUnprocessableEntity, "CURSOR_INVALID", streamOf(l)+"?after=9", bearer("alice")...)
	r.expire(l, 2)
	refuses(http.StatusGone, "HISTORY_EXPIRED", streamOf(l), bearer("alice")...)
	left := r.lines(streamOf(l)+"?after=2", bearer("alice")...)
	require.EqualValues(t, []uint64{3, 4}, []uint64{left[0].Sequence, left[1].Sequence})
	r.remove(l)
	refuses(http.StatusGone, "SESSION_DELETED", streamOf(l), bearer("alice")...)
}

// The media type that Accept names first decides what the client gets.
func TestStreamOrPage(t *testing.T) {
	t.Parallel()
	r := start(t)
	l := r.session("default")
	for accept, want := range map[string]string{
		"application/jsonl": "application/jsonl", "application/jsonl, text/event-stream": "application/jsonl",
		"text/event-stream, application/jsonl": "text/event-stream", "*/*": "text/event-stream", "": "text/event-stream", ";": "text/event-stream",
	} {
		_, _, head := r.request(http.MethodHead, streamOf(l), "Accept", accept)
		got, _, _ := strings.Cut(head.Get("Content-Type"), ";")
		require.Equal(t, want, got, accept)
		require.Equal(t, "Accept", head.Get("Vary"))
	}
}
