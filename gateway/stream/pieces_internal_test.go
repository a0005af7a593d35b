package stream

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// entry makes the event of a log with the sequence.
func entry(t require.TestingT, seq uint64, at time.Duration, d event.Data) *eventlog.Entry {
	l := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s1")}
	e, err := event.New(l, fmt.Sprintf("e%d", seq), "test", time.Unix(1_800_000_000, 0).Add(at), d)
	require.NoError(t, err)
	e.Sequence, e.Stream, e.From = seq, seq+100, seq
	raw, err := json.Marshal(e)
	require.NoError(t, err)
	return &eventlog.Entry{Event: e, Raw: raw}
}

// shown puts the entries together, and tells of each piece its text and sequences.
func shown(t require.TestingT, entries []*eventlog.Entry) (out []string, all []*eventlog.Entry) {
	p := pieces{gathers: func(d event.MessageDeltaData) bool { return d.Stage != event.StageSolving }}
	for _, e := range entries {
		d := p.delta(e, "test")
		visible := !isDelta(e) || d.gathers
		all = append(all, p.next(e, d, visible)...)
		require.Equal(t, e.Cursor(), p.upTo)
	}
	all = append(all, p.flush()...)
	for _, e := range all {
		text := string(e.Type)
		if d, err := event.As[event.MessageDeltaData](e.Event); err == nil && isDelta(e) {
			if text = d.Text; e.Type == event.ReasoningDelta {
				text = "(" + text + ")"
			}
		}
		out = append(out, fmt.Sprintf("%d-%d %s", e.From, e.Sequence, text))
	}
	return out, all
}

func isDelta(e *eventlog.Entry) bool {
	return e.Type == event.MessageDelta || e.Type == event.ReasoningDelta
}

// thought is the delta as a part of the reasoning.
func thought(d event.MessageDeltaData) event.ReasoningDeltaData {
	return event.ReasoningDeltaData{MessageID: d.MessageID, RunID: d.RunID, ExecutionID: d.ExecutionID, Attempt: d.Attempt, Text: d.Text, Part: d.Part}
}

func TestWherePiecesEnd(t *testing.T) {
	delta := func(message, text string) event.MessageDeltaData {
		return event.MessageDeltaData{MessageID: message, RunID: "r", ExecutionID: "x", Attempt: 1, Text: text}
	}
	hidden := delta("task", "not shown")
	hidden.Stage = event.StageSolving
	var entries []*eventlog.Entry
	for i, e := range []struct {
		ms   int
		data event.Data
	}{
		{0, delta("m", "One")}, {249, delta("m", " two")}, {250, delta("m", " three")}, // by time
		{260, delta("m", " four. ")}, {261, delta("m", "Five")}, // by the sentence
		{262, delta("n", "other")},                // by the message
		{263, hidden}, {264, delta("n", " text")}, // not by what is not shown
		{265, event.RunStartedData{RunID: "r"}},                      // by what is
		{266, delta("n", "\u597d\u3002")}, {267, delta("n", "next")}, // by a sentence of Chinese
		{268, thought(delta("n", "Let me"))}, {269, thought(delta("n", " see"))}, // by reasoning, which gathers likewise
		{270, thought(hidden)}, {271, delta("n", "last")}, // by its end, and the end
	} {
		entries = append(entries, entry(t, uint64(i+1), time.Duration(e.ms)*time.Millisecond, e.data))
	}
	got, _ := shown(t, entries)
	require.Equal(t, []string{
		"1-2 One two", "3-4  three four. ", "5-5 Five", "6-8 other text", "9-9 run.started", "10-10 好。", "11-11 next",
		"12-13 (Let me see)", "15-15 last",
	}, got)
}

// TestAnyPieces: pieces keep every text whole and in order, each is a place to continue from,
// and who continues from there sees the rest of the same text.
func TestAnyPieces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		n, at := rapid.IntRange(1, 40).Draw(r, "n"), time.Duration(0)
		var entries []*eventlog.Entry
		for i := range n {
			at += time.Duration(rapid.IntRange(0, 120).Draw(r, "ms")) * time.Millisecond
			var d event.Data = event.RunStartedData{RunID: "r"}
			if kind := rapid.IntRange(0, 5).Draw(r, "kind"); kind > 0 {
				m := event.MessageDeltaData{MessageID: fmt.Sprint("m", kind/4), RunID: "r", ExecutionID: "x", Attempt: 1}
				m.Text = rapid.SampledFrom([]string{"a", " b", "c.", "d!\" ", "\n", "", strings.Repeat("x", maxPiece/2)}).Draw(r, "text")
				if kind == 5 {
					m.Stage = event.StageSolving
				}
				if d = m; rapid.IntRange(0, 3).Draw(r, "thought") == 0 {
					d = thought(m)
				}
			}
			entries = append(entries, entry(r, uint64(i+1), at, d))
		}
		_, all := shown(r, entries)
		require.Equal(r, said(r, entries), said(r, all))
		again, _ := shown(r, entries)
		now, _ := shown(r, entries)
		require.Equal(r, again, now)
		last := uint64(0)
		for _, e := range all {
			require.Greater(r, e.From, last)
			last = e.Sequence
			_, rest := shown(r, entries[e.Sequence:])
			require.Equal(r, said(r, entries[e.Sequence:]), said(r, rest))
		}
	})
}

// TestPiecesAreTheSameForEveryReader: deltas are appended at any times and announced late in any way, so that a live viewer's
// maxWait may end in any piece. Its pieces, joined, are those of the log, and from any position on so are those of who resumes.
func TestPiecesAreTheSameForEveryReader(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		var entries []*eventlog.Entry
		at := time.Duration(0)
		for i := range rapid.IntRange(1, 40).Draw(r, "n") {
			at += time.Duration(rapid.IntRange(0, 120).Draw(r, "ms")) * time.Millisecond
			m := event.MessageDeltaData{MessageID: fmt.Sprint("m", rapid.IntRange(0, 9).Draw(r, "message")/9), RunID: "r", ExecutionID: "x", Attempt: 1}
			m.Text = rapid.SampledFrom([]string{"a", " b", " and", " c."}).Draw(r, "text")
			entries = append(entries, entry(r, uint64(i+1), at, m))
		}
		_, all := shown(r, entries)
		cut := rapid.IntRange(0, len(entries)).Draw(r, "cut")
		_, rest := shown(r, entries[cut:])
		require.Equal(r, ends(all, uint64(cut)), ends(rest, uint64(cut)), "after a return to any position")

		late := rapid.SliceOfN(rapid.Bool(), len(entries), len(entries)).Draw(r, "late")
		p := pieces{gathers: func(event.MessageDeltaData) bool { return true }}
		var live []*eventlog.Entry
		for i, e := range entries {
			if late[i] { // no more of the piece came for as long as it waits
				live = append(live, p.flush()...)
			}
			live = append(live, p.next(e, p.delta(e, "test"), true)...)
		}
		live = append(live, p.flush()...)
		require.Subset(r, ends(live, 0), ends(all, 0), "a piece is shown in parts, but parts of two pieces never together")
		require.Equal(r, said(r, all), said(r, live))
	})
}

// The timer of a piece leaves deltas that belong to it at least pieceWait to arrive.
func TestAPieceWaitsForItsStretch(t *testing.T) {
	t.Parallel()
	for ms, wait := range map[int]int{0: 500, 1: 499, 249: 251, 250: 500, 499: 251} {
		p := pieces{open: []*eventlog.Entry{entry(t, 1, time.Duration(ms)*time.Millisecond, event.RunStartedData{RunID: "r"})}}
		require.Equal(t, time.Duration(wait)*time.Millisecond, p.maxWait(), ms)
	}
}

// ends returns where the pieces end, after a position.
func ends(pieces []*eventlog.Entry, after uint64) (out []uint64) {
	for _, e := range pieces {
		if e.Sequence > after {
			out = append(out, e.Sequence)
		}
	}
	return out
}

// said is what a viewer has read in the end: the text of each message, and the rest.
func said(t require.TestingT, entries []*eventlog.Entry) map[string]string {
	out := map[string]string{}
	for _, e := range entries {
		if !isDelta(e) {
			out["others"] += fmt.Sprint(e.Sequence, " ")
			continue
		}
		d, err := event.As[event.MessageDeltaData](e.Event)
		require.NoError(t, err)
		if d.Stage != event.StageSolving {
			out[fmt.Sprint(d.MessageID, e.Type)] += d.Text
		}
	}
	return out
}
