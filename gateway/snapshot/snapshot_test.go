package snapshot_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/gateway/snapshot"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// drawn draws a log of one kind: events of the recorded logs of the kind in any order, under few ids.
func drawn(t *rapid.T, logs map[string][]event.Event) (id.Kind, []event.Event) {
	kind := rapid.SampledFrom(snapshot.Kinds()).Draw(t, "kind")
	var pool []event.Event
	for _, name := range slices.Sorted(maps.Keys(logs)) {
		if strings.Contains(logs[name][0].Subject, "."+string(kind)+".") {
			pool = append(pool, logs[name]...)
		}
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var out []event.Event
	from := rapid.IntRange(0, len(pool)-1).Draw(t, "from")
	for i := range rapid.IntRange(1, 80).Draw(t, "length") {
		e := pool[(from+i)%len(pool)]
		if rapid.IntRange(0, 4).Draw(t, "jump") == 0 {
			e = pool[rapid.IntRange(0, len(pool)-1).Draw(t, "place")]
		}
		at = at.Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "pause")) * time.Millisecond)
		e.Sequence, e.Time = uint64(i+1), at
		out = append(out, e)
	}
	return kind, out
}

// TestAFoldInPiecesEqualsTheWhole: forks continue by themselves, and what one takes the others do not see.
func TestAFoldInPiecesEqualsTheWhole(t *testing.T) {
	logs := recorded(t)
	rapid.Check(t, func(rt *rapid.T) {
		kind, events := drawn(rt, logs)
		after := func(n int) string {
			f := snapshot.New(kind)
			for _, e := range events[:n] {
				f.Take(e)
			}
			return canonical(t, f)
		}
		f, kept := snapshot.New(kind), map[int]*snapshot.Fold{}
		for i, e := range events {
			if rapid.IntRange(0, 9).Draw(rt, "fork") == 0 {
				kept[i], f = f, f.Fork()
			}
			f.Take(e)
		}
		want := after(len(events))
		require.Equal(t, want, canonical(t, f))
		for i, old := range kept {
			require.Equal(t, after(i), canonical(t, old), "what came later changed the fold of %d events", i)
			for _, e := range events[i:] {
				old.Take(e)
			}
			require.Equal(t, want, canonical(t, old))
		}
	})
}

// TestACutHidesNothing: a fold from a cut shows the end of the conversation that a fold from the beginning shows.
func TestACutHidesNothing(t *testing.T) {
	found := 0
	for name, events := range recorded(t) {
		if !snapshot.Cuts(kindOf(t, events)) {
			continue
		}
		for end := 1; end <= len(events); end++ {
			var cut snapshot.Cut
			var whole api.Snapshot
			for _, e := range slices.Backward(events[:end]) {
				before := cut.Found
				if cut.Take(e); cut.Found == before || cut.Found == 1 {
					continue
				}
				if found++; whole.Conversation == nil {
					whole = fold(t, events[:end]).Snapshot(entity)
				}
				part := fold(t, events[cut.Found-1:end]).Snapshot(entity)
				items := whole.Conversation.Items
				require.Equal(t, items[len(items)-len(part.Conversation.Items):], part.Conversation.Items, "%s from %d to %d", name, cut.Found, end)
				require.Equal(t, whole.Conversation.Questions, part.Conversation.Questions)
				require.Equal(t, whole.Conversation.Active, part.Conversation.Active)
				require.Equal(t, whole.Bars[len(whole.Bars)-len(part.Bars):], part.Bars)
			}
		}
	}
	require.Greater(t, found, 20)
}

// FuzzAFoldTakesAnyEvent: no data of an event breaks a fold or its snapshot.
func FuzzAFoldTakesAnyEvent(f *testing.F) {
	for _, events := range recorded(f) {
		for i, e := range events {
			if i%10 == 0 {
				f.Add(string(e.Type), []byte(e.Data))
			}
		}
	}
	f.Add("tool.called", []byte(`{"run_id":"r","call_id":"c","arguments":{"a":1e400,"a":-0,"\ud800":9007199254740993}}`))
	f.Add("task.asked", []byte(`{"input_id":"q","message":[1e-9999,{"z":1,"1":2}]}`))
	f.Fuzz(func(t *testing.T, kind string, data []byte) {
		if !json.Valid(data) {
			return // logs hold valid JSON only
		}
		for _, of := range snapshot.Kinds() {
			fold := snapshot.New(of)
			for i, d := range [][]byte{data, fmt.Appendf(nil, `{"member_name":"m","status":"x","event":{"type":%q,"data":%s}}`, kind, data)} {
				e := event.Event{Type: event.Type(kind), Sequence: uint64(i + 1), Time: time.Unix(int64(i), 0).UTC(), Data: d}
				if i == 1 {
					e.Type = event.TeamMemberEvent
				}
				fold.Take(e)
				text := canonical(t, fold)
				require.True(t, json.Valid([]byte(text)))
				require.Equal(t, text, canonical(t, fold.Fork()))
			}
		}
	})
}
