package canonical_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/gateway/events/canonical"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// TestEventsSurvive: an event of any type reads back as it was, with the members that this
// version does not know, on one line.
func TestEventsSurvive(t *testing.T) {
	l := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s")}
	rapid.Check(t, func(t *rapid.T) {
		data, err := json.Marshal(map[string]any{"later": rapid.String().Draw(t, "text"), "html": "<b>&amp;</b>"})
		require.NoError(t, err)
		seq := rapid.Uint64Range(1, 1<<53).Draw(t, "seq")
		from := seq - rapid.Uint64Range(0, min(seq-1, 40)).Draw(t, "merged")
		e := event.Event{
			SpecVersion: event.SpecVersion, ID: "e", Source: "test", Type: rapid.SampledFrom(event.Catalogue).Draw(t, "type").Type,
			Subject: l.Name(), Time: time.Unix(1_800_000_000, 0).UTC(), Sequence: seq, Data: data, From: from,
		}
		out := canonical.Codec{}.Encode(e)
		require.Len(t, out, 1)
		require.NotContains(t, string(out[0]), "\n")
		require.Equal(t, out, canonical.Codec{}.Encode(e))
		var back struct {
			event.Event
			From uint64 `json:"from"`
		}
		require.NoError(t, json.Unmarshal(out[0], &back))
		require.JSONEq(t, string(data), string(back.Data))
		if from == seq {
			require.Zero(t, back.From)
		} else {
			require.Equal(t, from, back.From)
		}
		back.Data, e.Data, e.From = nil, nil, 0
		require.Equal(t, e, back.Event)
	})
}

func TestProblems(t *testing.T) {
	require.JSONEq(t, `{"type":"about:blank","title":"CURSOR_INVALID","status":422,"field":"after",
		"detail":"after is not a position in this session. Use the seq of the last event you received."}`,
		string(canonical.Codec{}.Fail(fault.New(fault.CursorInvalid).At("after"), time.Time{})))
	var p canonical.Problem
	require.NoError(t, json.Unmarshal(canonical.Codec{}.Truncated(41), &p))
	require.Equal(t, "HISTORY_EXPIRED", p.Title)
	require.EqualValues(t, 41, p.First)
	require.JSONEq(t, `{"dropped":3}`, string(canonical.Gap{Dropped: 3}.Encode()))
}

// TestTheSchemaHasEveryMember of an event that is shown, those that no log has included.
func TestTheSchemaHasEveryMember(t *testing.T) {
	var schema struct {
		Defs map[string]struct {
			Properties map[string]json.RawMessage `json:"properties"`
		} `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal([]byte(event.Schema), &schema))
	known := schema.Defs["event"].Properties
	require.NotEmpty(t, known)
	out := canonical.Codec{}.Encode(event.Event{
		SpecVersion: event.SpecVersion, ID: "e", Source: "test", Type: event.MessageDelta, Subject: "default.session.s", Time: time.Unix(1, 0).UTC(),
		Sequence: 9, From: 3, TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Request: "r", Data: json.RawMessage(`{}`),
	})
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(out[0], &members))
	require.Contains(t, members, "from")
	for name := range members {
		require.Contains(t, known, name)
	}
}
