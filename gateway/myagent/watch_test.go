package myagent_test

import (
	"testing"

	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// TestWatchingAnyRun: nothing that matters is dropped, and members of a team look as they do by themselves.
func TestWatchingAnyRun(t *testing.T) {
	dialecttest.ExerciseWatching(t, dialecttest.Watch{
		Encode: []func(event.Event) [][]byte{dense(t, "").Encode, dense(t, "en_US").Encode},
		Kind:   "event", Outbound: wire.Outbound, Schema: wire.Schema, One: true,
		Member: func(f map[string]any) string {
			meta, _ := f["metadata"].(map[string]any)
			route, _ := meta["member_route"].(string)
			return route
		},
		Strip: func(f map[string]any) {
			for _, name := range []string{"seq", "event_id", "session_id"} {
				delete(f, name)
			}
			meta, _ := f["metadata"].(map[string]any)
			for _, name := range []string{"member_route", "agent_id", "team_id"} {
				delete(meta, name)
			}
		},
	})
}
