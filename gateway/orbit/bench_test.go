package orbit_test

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/orbit"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// maxAllocs bounds what encoding one delta may allocate: it is done once for each
// event and variant, however many sockets watch. Measured: 18, most of them in
// encoding/json.
const maxAllocs = 24

func eventsOf(t testing.TB, name string) []event.Event {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "transcripts", name+".txtar"))
	require.NoError(t, err)
	var out []event.Event
	for _, f := range txtar.Parse(raw).Files {
		if f.Name != "bus" {
			continue
		}
		for line := range bytes.Lines(f.Data) {
			var e event.Event
			if json.Unmarshal(line, &e) == nil {
				out = append(out, e)
			}
		}
	}
	require.NotEmpty(t, out)
	return out
}

func BenchmarkEncode(b *testing.B) {
	codec, err := orbit.Dialect().Bind(url.Values{"deltas": {"true"}})
	require.NoError(b, err)
	for _, e := range eventsOf(b, "takeover") {
		if len(codec.Encode(e)) == 0 {
			continue
		}
		b.Run(string(e.Type), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				codec.Encode(e)
			}
		})
	}
}
