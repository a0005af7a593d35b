package entry

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/eventlog/internal/entry/entrytest"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func TestCursorForms(t *testing.T) {
	for in, want := range map[string]Cursor{
		"0": {}, "7": {Seq: 7}, "7.900": {Seq: 7, Stream: 900}, "0.5": {}, "18446744073709551615": {Seq: 1<<64 - 1},
	} {
		got, err := ParseCursor(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
	}
	for _, in := range []string{"", ".", "1.", ".1", "-1", "+1", "01", "1.2.3", "1.02", "a", "1e3", " 1", "18446744073709551616", strings.Repeat("9", 1000)} {
		_, err := ParseCursor(in)
		require.ErrorIs(t, err, ErrBadCursor, in)
		require.Less(t, len(err.Error()), 200)
	}
}

func FuzzParseCursor(f *testing.F) {
	for _, s := range []string{"", "0", "12.34", "1.", "x", "00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseCursor(s)
		if err != nil {
			return
		}
		again, err := ParseCursor(c.String())
		if err != nil || again != c {
			t.Fatalf("%q -> %v -> %v, %v", s, c, again, err)
		}
	})
}

// stored returns the entry that a log would hold.
func stored(t require.TestingT, seq uint64, data event.Data) *Entry {
	ev, err := event.New(testLog("pure"), fmt.Sprintf("e%d", seq), "test", time.UnixMilli(int64(seq)), data)
	require.NoError(t, err)
	ev.Sequence = seq
	raw, err := Encode(ev)
	require.NoError(t, err)
	e, err := Decode(ev.Subject, seq, seq*3, raw)
	require.NoError(t, err)
	return e
}

func delta(message, text string) event.MessageDeltaData { return entrytest.Delta(message, text) }

func TestStoredFormIsTheEventItself(t *testing.T) {
	ev, err := event.New(testLog("form"), "id-1", "test", time.UnixMilli(1), delta("m", "a<b>&\u2028\x00é"))
	require.NoError(t, err)
	ev.Data = json.RawMessage(`{"text":"a<b>","unknown":{"kept":[1,2]}}`)
	ev.Sequence = 4
	raw, err := Encode(ev)
	require.NoError(t, err)
	require.Contains(t, string(raw), `"unknown":{"kept":[1,2]}`)
	require.NotContains(t, string(raw), "\n")
	e, err := Decode(testLog("form").Name(), 4, 9, raw)
	require.NoError(t, err)
	ev.Stream, ev.From = 9, 4 // known to the reader besides
	require.Equal(t, ev, e.Event)
	require.Equal(t, Cursor{Seq: 4, Stream: 9}, e.Cursor())

	for _, bad := range []struct {
		log string
		seq uint64
		raw string
	}{
		{testLog("form").Name(), 5, string(raw)},
		{testLog("other").Name(), 4, string(raw)},
		{testLog("form").Name(), 0, `{}`},
		{testLog("form").Name(), 4, `nonsense`},
	} {
		_, err := Decode(bad.log, bad.seq, 9, []byte(bad.raw))
		require.ErrorIs(t, err, ErrUnreadable)
	}
}

func TestMemoIsBuiltOncePerKey(t *testing.T) {
	e := stored(t, 1, delta("m", "x"))
	var built atomic.Int32
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			key := fmt.Sprint(i % 4)
			got := e.Memo(key, func() any { built.Add(1); return "value " + key })
			require.Equal(t, "value "+key, got)
		})
	}
	wg.Wait()
	require.EqualValues(t, 4, built.Load())
	require.NotPanics(t, func() { e.Memo("0", nil) }, "a value that is there is not built again")
}

// drawLog draws a log of deltas of a few messages and other events.
func drawLog(t *rapid.T, most int) []*Entry {
	n := rapid.IntRange(1, most).Draw(t, "entries")
	out := make([]*Entry, n)
	for i := range out {
		seq := uint64(i + 1)
		if rapid.IntRange(0, 4).Draw(t, "kind") == 0 {
			out[i] = stored(t, seq, event.NoticeData{Level: "info", Code: "c", Message: "m"})
			continue
		}
		d := delta(rapid.SampledFrom([]string{"m1", "m1", "m1", "m2"}).Draw(t, "message"), rapid.String().Draw(t, "text"))
		d.Attempt = rapid.IntRange(1, 2).Draw(t, "attempt")
		if out[i] = stored(t, seq, d); rapid.IntRange(0, 2).Draw(t, "reasoning") == 0 {
			out[i] = stored(t, seq, entrytest.Thought(d))
		}
	}
	return out
}

// texts folds a log the way a viewer does.
func texts(t require.TestingT, log []*Entry) map[string]string { return entrytest.Texts(t, each(log)) }

func each(log []*Entry) iter.Seq2[event.Event, []byte] {
	return func(yield func(event.Event, []byte) bool) {
		for _, e := range log {
			if !yield(e.Event, e.Raw) {
				return
			}
		}
	}
}

func TestMergePreservesTheFold(t *testing.T) { rapid.Check(t, mergePreservesTheFold) }

func FuzzMerge(f *testing.F) { f.Fuzz(rapid.MakeFuzz(mergePreservesTheFold)) }

func mergePreservesTheFold(t *rapid.T) {
	log := drawLog(t, 40)
	merged := Merge(log)
	require.Equal(t, texts(t, log), texts(t, merged))
	require.Equal(t, log[len(log)-1].Cursor(), merged[len(merged)-1].Cursor())
	for i := 1; i < len(merged); i++ { // nothing that could be merged is left
		a, okA := deltaData(merged[i-1])
		b, okB := deltaData(merged[i])
		require.False(t, okA && okB && merged[i-1].Type == merged[i].Type && sameMessage(a, b) && len(a.Text)+len(b.Text) <= maxMergedText)
	}
	require.Equal(t, texts(t, merged), texts(t, Merge(merged)), "merging again changes nothing")
}

// Viewers in several states see the frame that opens a text at one position.
func TestMergeLeavesTheBeginningOfATextAlone(t *testing.T) {
	first := delta("m", "a")
	first.Begins = true
	a, b, c := stored(t, 1, first), stored(t, 2, delta("m", "b")), stored(t, 3, delta("m", "c"))
	merged := Merge([]*Entry{a, b, c})
	require.Len(t, merged, 2)
	require.Same(t, a, merged[0])
	require.Equal(t, uint64(2), merged[1].From)
	require.Equal(t, c.Cursor(), merged[1].Cursor())
	require.Equal(t, texts(t, []*Entry{a, b, c}), texts(t, merged))
}

func TestMergeLeavesUnknownMembersAlone(t *testing.T) {
	a, b := stored(t, 1, delta("m", "a")), stored(t, 2, delta("m", "b"))
	b.Data = json.RawMessage(`{"message_id":"m","run_id":"r","execution_id":"x","attempt":1,"text":"b","new":1}`)
	require.Equal(t, []*Entry{a, b}, Merge([]*Entry{a, b}))
}

// TestMergeKeepsReasoningApart: the text of a message and its reasoning are two texts.
func TestMergeKeepsReasoningApart(t *testing.T) {
	a, b := entrytest.Thought(delta("m", "Let me")), entrytest.Thought(delta("m", " see."))
	log := []*Entry{stored(t, 1, a), stored(t, 2, b), stored(t, 3, delta("m", "Yes")), stored(t, 4, delta("m", "."))}
	merged := Merge(log)
	require.Len(t, merged, 2)
	require.Equal(t, event.ReasoningDelta, merged[0].Type)
	require.JSONEq(t, `{"message_id":"m","run_id":"r","execution_id":"x","attempt":1,"text":"Let me see."}`, string(merged[0].Data))
	require.Equal(t, event.MessageDelta, merged[1].Type)
	require.Equal(t, texts(t, log), texts(t, merged))
}

func TestMergeIsBounded(t *testing.T) {
	var log []*Entry
	for i := range uint64(40) {
		log = append(log, stored(t, i+1, delta("m", strings.Repeat("x", 4<<10))))
	}
	merged := Merge(log)
	require.Len(t, merged, 40*4/32)
	require.Equal(t, texts(t, log), texts(t, merged))
}

// spliceIsExact: whatever is lost, doubled, late or early on the live side and
// however history is read, what comes out is the log.
func spliceIsExact(t *rapid.T) {
	log := drawLog(t, 30)
	start := rapid.IntRange(0, len(log)).Draw(t, "start") // the reader resumes here
	s := &Splice{}
	var out []*Entry
	out = s.SkipTo(Cursor{Seq: uint64(start), Stream: uint64(start) * 3})
	end := 0 // announced so far
	steps := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 80).Draw(t, "steps")
	for _, step := range steps {
		switch {
		case step < 6 && end < len(log): // announced; 0 = lost
			if end++; step > 0 {
				out = s.Offer(out, log[end-1])
			}
		case step < 8 && end > 0: // doubled, late or early
			out = s.Offer(out, log[rapid.IntRange(0, end-1).Draw(t, "which")])
		case s.Behind(): // heal by one page of history
			from := int(s.Last.Seq)
			for _, e := range log[from:min(end, from+rapid.IntRange(1, 5).Draw(t, "page"))] {
				out = s.Offer(out, e)
			}
		}
		requireDense(t, out, uint64(start))
	}
	for _, e := range log[s.Last.Seq:] { // the tail check
		out = s.Offer(out, e)
	}
	require.False(t, s.Behind())
	require.Empty(t, s.held)
	require.Zero(t, s.bytes)
	require.Equal(t, log[start:], append([]*Entry{}, out...))
}

func TestSpliceIsExact(t *testing.T) { rapid.Check(t, spliceIsExact) }

func FuzzSplice(f *testing.F) { f.Fuzz(rapid.MakeFuzz(spliceIsExact)) }

func requireDense(t require.TestingT, out []*Entry, after uint64) {
	for i, e := range out {
		require.Equal(t, after+uint64(i)+1, e.Sequence)
	}
}

func TestSpliceHoldsABoundedNumber(t *testing.T) {
	s := &Splice{}
	for i := range uint64(10 * maxHeld) {
		require.Empty(t, s.Offer(nil, stored(t, i+2, delta("m", "x"))))
	}
	require.Len(t, s.held, maxHeld)
	require.True(t, s.Behind())
	require.Len(t, s.Offer(nil, stored(t, 1, delta("m", "x"))), maxHeld+1)
	require.True(t, s.Behind(), "what was not held has to be read")
	s.Forget()
	require.False(t, s.Behind())
}

func TestSpliceSkips(t *testing.T) {
	s := &Splice{}
	require.Empty(t, s.Offer(nil, stored(t, 5, delta("m", "x"))))
	require.Empty(t, s.Offer(nil, stored(t, 3, delta("m", "x"))))
	require.Len(t, s.SkipTo(Cursor{Seq: 4, Stream: 12}), 1)
	require.EqualValues(t, 5, s.Last.Seq)
	require.Empty(t, s.held)
	require.Empty(t, s.SkipTo(Cursor{Seq: 2}))
	require.EqualValues(t, 5, s.Last.Seq)
}

func TestRingAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 12).Draw(t, "max")
		r := NewRing(limit, rapid.IntRange(600, 6000).Draw(t, "bytes"))
		var model []*Entry
		last := uint64(rapid.IntRange(0, 20).Draw(t, "start"))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0: // history read backwards
				var older []*Entry
				next := last + 1
				if len(model) > 0 {
					next = model[0].Sequence
				}
				for seq := next - min(next-1, 4); seq < next+2; seq++ {
					older = append(older, stored(t, seq, delta("m", "o")))
				}
				r.Extend(older, last+1)
			case 1:
				r.trim(rapid.IntRange(0, 2000).Draw(t, "trim"))
			default:
				if rapid.IntRange(0, 9).Draw(t, "jump") == 0 {
					last++
				}
				last++
				r.Push(stored(t, last, delta("m", "p")))
			}
			model = model[:0]
			total := 0
			for i := range r.n {
				model = append(model, r.at(i))
				total += weight(r.at(i))
			}
			requireContiguousUpTo(t, model, last)
			require.LessOrEqual(t, r.n, limit)
			require.Equal(t, total, r.bytes)
			require.True(t, r.n <= 1 || r.bytes <= r.limit)
			at := uint64(rapid.IntRange(0, int(last)).Draw(t, "after"))
			got, ok := r.After(at, 5)
			require.Equal(t, r.n > 0 && r.First() <= at+1, ok)
			requireDense(t, got, at)
		}
	})
}

func requireContiguousUpTo(t require.TestingT, entries []*Entry, last uint64) {
	for i, e := range entries {
		require.Equal(t, last-uint64(len(entries)-1-i), e.Sequence)
	}
}

func testLog(name string) subject.Log {
	return subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal(name)}
}
