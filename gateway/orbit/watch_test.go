package orbit_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/gateway/orbit"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	wire "github.com/waggle-dev/waggle/proto-schemas/orbit"
)

// TestWatchingAnyRun: nothing that matters is dropped, and members of a team look as they do by themselves.
func TestWatchingAnyRun(t *testing.T) {
	var encode []func(event.Event) [][]byte
	for _, q := range []url.Values{{"deltas": {"false"}}, {"deltas": {"true"}}} {
		codec, err := orbit.Dialect().Bind(q)
		require.NoError(t, err)
		encode = append(encode, codec.Encode)
	}
	dialecttest.ExerciseWatching(t, dialecttest.Watch{
		Encode: encode, Kind: "type", Outbound: wire.Outbound, Schema: wire.Schema,
		Member: func(f map[string]any) string {
			route, _ := f["agent"].(string)
			return route
		},
		Strip: func(f map[string]any) {
			delete(f, "agent")
			delete(f, "seq")
		},
	})
}
