package orbit_test

import (
	"encoding/json"
	"io/fs"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/gateway/orbit"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	wire "github.com/waggle-dev/waggle/proto-schemas/orbit"
)

func suite(t testing.TB) dialecttest.Suite {
	t.Helper()
	examples, err := fs.Sub(wire.Examples, "examples")
	require.NoError(t, err)
	return dialecttest.Suite{
		Dialect:     orbit.Dialect(),
		Package:     "github.com/waggle-dev/waggle/gateway/orbit",
		Variants:    []url.Values{{"deltas": {"false"}}, {"deltas": {"true"}}, {}},
		Transcripts: "testdata/transcripts",
		Schema:      wire.Schema,
		Examples:    examples,
		Inbound:     wire.Inbound,
		Outbound:    wire.Outbound,
	}
}

func TestConformance(t *testing.T) { dialecttest.Exercise(t, suite(t)) }

func FuzzDecode(f *testing.F) { dialecttest.FuzzDecode(f, suite(f)) }

func FuzzEncode(f *testing.F) { dialecttest.FuzzEncode(f, suite(f)) }

func TestBind(t *testing.T) {
	for query, want := range map[string]string{
		"": "orbit+page", "token=x": "orbit+page", "watch=session/s1": "orbit", "deltas=false": "orbit", "deltas=0": "orbit", "session=s1&after=3": "orbit",
		"deltas=true": "orbit+deltas", "deltas=1": "orbit+deltas",
	} {
		q, err := url.ParseQuery(query)
		require.NoError(t, err)
		codec, err := orbit.Dialect().Bind(q)
		require.NoError(t, err, query)
		require.Equal(t, want, codec.Name(), query)
	}
	_, err := orbit.Dialect().Bind(url.Values{"deltas": {"maybe"}})
	require.ErrorIs(t, err, fault.New(fault.InvalidField))
	require.ErrorContains(t, err, "deltas")
}

// TestADamagedEventIsNotSilence: a viewer that waits for the end of a run must learn
// that the log cannot be read there.
func TestADamagedEventIsNotSilence(t *testing.T) {
	codec, err := orbit.Dialect().Bind(nil)
	require.NoError(t, err)
	for _, data := range []string{"", "{", `"x"`, `{"content":7}`} {
		got := codec.Encode(event.Event{Type: event.RunCompleted, Sequence: 9, Time: dialecttest.Now, Data: []byte(data)})
		require.Len(t, got, 1)
		var f wire.Frame[wire.ErrorData]
		require.NoError(t, json.Unmarshal(got[0], &f))
		require.Equal(t, wire.Error, f.Type)
		require.Equal(t, uint64(9), f.Seq)
		require.Equal(t, string(fault.Internal), f.Data.Code)
		dialecttest.Fits(t, wire.Schema, wire.Error, got[0])
	}
}
