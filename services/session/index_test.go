package session_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/session"
)

// TestListsOutliveAReplica: whichever replica writes the index, the other one takes over and finds what happened between
// the two.
func TestListsOutliveAReplica(t *testing.T) {
	t.Parallel()
	for _, stops := range []string{"a", "b"} {
		r := newRig(t)
		replicas := map[string]*session.Service{}
		for _, name := range []string{"a", "b"} {
			replicas[name] = r.start(name, session.Config{IndexEvery: time.Millisecond})
		}
		w := r.serveAPI()
		listed := func(want ...string) {
			t.Helper()
			require.Eventually(t, func() bool {
				_, body := w.ask("alice", "GET", "/api/v1/sessions")
				for _, s := range want {
					if !strings.Contains(body, s) {
						return false
					}
				}
				return true
			}, maxWait, 5*time.Millisecond, want)
		}
		r.open(log, event.Preferences{})
		listed(`"session_id":"s1"`)
		replicas[stops].Stop()
		r.open(sessionLog("s2"), event.Preferences{})
		r.append(log, event.MessageReceivedData{MessageID: "m", RunID: "r", Content: "hello"})
		listed(`"session_id":"s2"`, `"question":"hello"`)
	}
}
