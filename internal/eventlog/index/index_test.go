package index_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/eventlog/index"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func opened(owner string) event.Data {
	return event.SessionCreatedData{Dialect: "orbit", Principal: owner}
}

func asked(run, text string) event.Data {
	return event.MessageReceivedData{MessageID: "m-" + run, RunID: run, Content: text, RunSpec: event.RunSpec{Mode: event.ModeChat}}
}

// TestASummaryFollowsItsLog event by event, and is the same when it is made from all events at once.
func TestASummaryFollowsItsLog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := sessionOf(red, "s1")
	for i, step := range []struct {
		data   event.Data
		state  string
		status string
		runs   int
	}{
		{opened("ann"), "idle", "open", 0},
		{asked("r1", "  what \n is\tthis? "+strings.Repeat("x", 200)), "running", "open", 1},
		{event.RunStartedData{RunID: "r1", ExecutionID: "x"}, "running", "open", 1},
		{asked("r2", "and that?"), "running", "open", 2},
		{event.InputRequestedData{InputID: "i1", RunID: "r1", Scope: "tool"}, "waiting", "open", 2},
		{event.RunCancelledData{RunID: "r2"}, "waiting", "open", 2},
		{event.InputAnsweredData{InputID: "i1"}, "running", "open", 2},
		{event.InputRequestedData{InputID: "i2", RunID: "r1", Scope: "tool"}, "waiting", "open", 2},
		{event.RunCompletedData{RunID: "r1", ExecutionID: "x", MessageID: "a"}, "completed", "open", 2},
		{event.SessionClosedData{}, "completed", "closed", 2},
	} {
		r.append(l, step.data)
		require.NoError(t, r.Update(r.ctx, l))
		got := r.all(red, 10)
		require.Len(t, got, 1)
		s := got[0]
		require.Equal(t, fmt.Sprint(step.state, step.status, step.runs, i+1), fmt.Sprint(s.State(), s.Status(), s.Runs, s.LastSeq), step.data)
		require.Equal(t, "ann orbit", s.Owner+" "+s.Dialect)
		require.True(t, s.Known)
	}
	before := r.all(red, 10)[0]
	require.Len(t, []rune(before.Question), 120)
	require.True(t, strings.HasPrefix(before.Question, "what is this? xxx"))
	require.NoError(t, r.Update(r.ctx, l))
	require.Equal(t, before, r.all(red, 10)[0], "without news nothing is written")
	r.purgeIndex()
	require.Empty(t, r.all(red, 10))
	require.NoError(t, r.Update(r.ctx, l))
	again := r.all(red, 10)[0]
	again.Sequence = before.Sequence
	require.Equal(t, before, again)
}

// TestASummaryCountsWhatRunsTook: time, tokens and cost of the runs that are over, and who answered. The cost is unknown as soon as
// a model has no price.
func TestASummaryCountsWhatRunsTook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := sessionOf(red, "s1")
	cached := func(n int64, u *event.Usage) *event.Usage {
		u.CachedTokens = n
		return u
	}
	used := func(in, out int64, usd ...float64) *event.Usage {
		u := &event.Usage{LLMCalls: 1, InputTokens: &in, OutputTokens: &out}
		if len(usd) > 0 {
			u.CostUSD = &usd[0]
		}
		return u
	}
	r.append(l, opened("ann"), asked("r1", "one"))
	for _, step := range []struct {
		data         event.Data
		ms, tokens   int64
		of           string // of the tokens: input, and what of it was cached
		cost         string
		model, agent string
	}{
		{event.JobStartedData{RunID: "r1", Worker: "w-1", Model: "large"}, 0, 0, "0 0", "unknown", "", ""},
		{event.MessageStartedData{RunID: "r1", Model: "large-2026"}, 0, 0, "0 0", "unknown", "large-2026", ""},
		{event.RunCompletedData{RunID: "r1", DurationMS: 1500, Usage: cached(80, used(100, 20, 0.25))}, 1500, 120, "100 80", "0.25", "large-2026", ""},
		{event.RunFailedData{RunID: "r2", Code: "X", DurationMS: 500, Usage: used(10, 0, 0.5)}, 2000, 130, "110 80", "0.75", "large-2026", ""},
		{event.RunCancelledData{RunID: "r3"}, 2000, 130, "110 80", "0.75", "large-2026", ""},
		{event.JobStartedData{RunID: "r4", Worker: "painter", SwarmTask: "t1"}, 2000, 130, "110 80", "0.75", "large-2026", "painter"},
		{event.RunCompletedData{RunID: "r4", DurationMS: 1, Usage: &event.Usage{ToolCalls: 1}}, 2001, 130, "110 80", "0.75", "large-2026", "painter"},
		{event.RunCompletedData{RunID: "r5", DurationMS: 1, Usage: used(1, 1)}, 2002, 132, "111 80", "unknown", "large-2026", "painter"},
	} {
		r.append(l, step.data)
		require.NoError(t, r.Update(r.ctx, l))
		s := r.all(red, 10)[0]
		cost := "unknown"
		if c := s.Spent.Cost(); c != nil {
			cost = fmt.Sprint(*c)
		}
		require.Equal(t, fmt.Sprint(step.ms, step.tokens, step.of, step.cost, step.model, step.agent),
			fmt.Sprint(s.Spent.MS, s.Spent.Tokens, fmt.Sprint(s.Spent.Input, s.Spent.Cached), cost, s.Model, s.Agent), step.data)
	}
}

func (r *rig) purgeIndex() {
	r.t.Helper()
	s, err := r.conn.JS().Stream(r.ctx, subject.StreamIndex)
	require.NoError(r.t, err)
	require.NoError(r.t, s.Purge(r.ctx))
}

// TestASummaryLeavesWithItsLog: neither a deletion nor age leaves a text in the index, and no late writer brings it back.
func TestASummaryLeavesWithItsLog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	gone, aged, kept := sessionOf(red, "gone"), sessionOf(red, "aged"), sessionOf(red, "kept")
	for _, l := range []subject.Log{gone, aged, kept} {
		r.append(l, opened("ann"), asked("r1", "secret"))
		require.NoError(t, r.Update(r.ctx, l))
	}
	r.append(gone, event.SessionDeletedData{})
	s, err := r.conn.JS().Stream(r.ctx, subject.DefaultPartitions.Stream(aged))
	require.NoError(t, err)
	require.NoError(t, s.Purge(r.ctx, jetstream.WithPurgeSubject(subject.DefaultPartitions.Event(aged))))
	for range 2 {
		for _, l := range []subject.Log{gone, aged, kept} {
			require.NoError(t, r.Update(r.ctx, l))
		}
		require.Equal(t, []string{"kept"}, names(r.all(red, 10)))
	}
}

// TestWritersRaceWithoutHarm: many writers of the same summaries, and each ends as its log says.
func TestWritersRaceWithoutHarm(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	logs := []subject.Log{sessionOf(red, "a"), sessionOf(red, "b")}
	for _, l := range logs {
		r.append(l, opened("ann"))
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				for _, l := range logs {
					_ = r.Update(r.ctx, l) // which may lose against the others
				}
			}
		})
	}
	for n := range 20 {
		for _, l := range logs {
			r.append(l, asked(fmt.Sprint(n), "x"))
		}
	}
	all.Wait()
	for _, l := range logs {
		require.NoError(t, r.Update(r.ctx, l))
	}
	for _, s := range r.all(red, 10) {
		require.EqualValues(t, 21, s.LastSeq)
		require.Equal(t, 20, s.Runs)
	}
}

// TestTenantsHaveSeparatePages: the summaries of one are in no page and no number of the other.
func TestTenantsHaveSeparatePages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 30 {
		tn := red
		if i%3 == 0 {
			tn = blue
		}
		l := sessionOf(tn, fmt.Sprint(i))
		r.append(l, opened("ann"))
		require.NoError(t, r.Update(r.ctx, l))
	}
	require.Len(t, r.all(red, 7), 20)
	require.Len(t, r.all(blue, 7), 10)
	require.Equal(t, 20, r.page(red, 0, 5).Total)
	require.Equal(t, 10, r.page(blue, 0, 5).Total)
	require.Empty(t, r.all(mustTenant("green"), 7))
	for _, s := range r.all(blue, 4) {
		require.Equal(t, blue, s.Log.Tenant)
	}
}

// TestANewStreamIsCountedAnew: what was counted in a stream that was deleted since hides nothing of the one in its place.
func TestANewStreamIsCountedAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.putMany(red, 3, 4)
	require.Len(t, r.all(red, 10), 3)
	require.NoError(t, r.conn.JS().DeleteStream(r.ctx, subject.StreamIndex))
	require.NoError(t, bus.Bootstrap(r.ctx, r.conn, bus.DefaultTopology()))
	r.putMany(red, 4, 1)
	require.Len(t, r.all(red, 10), 4)
	require.Equal(t, 4, r.page(red, 0, 2).Total)
}

// TestAnyWalkThroughPages compares walks with a model, while sessions come, change and go: the newest change is first, and
// a session that does not change during a walk is in it once.
func TestAnyWalkThroughPages(t *testing.T) {
	t.Parallel()
	walkThroughPages(t, newRig(t))
}

// TestAnyWalkThroughPagesOfALargeTenant is the same with a request for each summary.
func TestAnyWalkThroughPagesOfALargeTenant(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ReadSingly()
	walkThroughPages(t, r)
}

func walkThroughPages(t *testing.T, r *rig) {
	turn := 0
	rapid.Check(t, func(t *rapid.T) {
		turn++
		tn := mustTenant(fmt.Sprint("t", turn))
		var order []string // oldest change first
		touch := func(name string) {
			l := sessionOf(tn, name)
			r.putSummary(l)
			kept := order[:0]
			for _, o := range order {
				if o != name {
					kept = append(kept, o)
				}
			}
			order = append(kept, name)
		}
		name := rapid.Custom(func(t *rapid.T) string { return fmt.Sprint("s", rapid.IntRange(0, 25).Draw(t, "session")) })
		for range rapid.IntRange(0, 60).Draw(t, "changes") {
			touch(name.Draw(t, "name"))
			if rapid.IntRange(0, 9).Draw(t, "noise") == 0 {
				r.putSummary(sessionOf(blue, "noise"))
			}
		}
		steady := map[string]bool{}
		want := append([]string(nil), order...)
		for _, o := range want {
			steady[o] = true
		}
		size := rapid.IntRange(1, 8).Draw(t, "size")
		var got []string
		for before := uint64(0); ; {
			p := r.page(tn, before, size)
			require.LessOrEqual(t, len(p.Summaries), size)
			got = append(got, names(p.Summaries)...)
			if !p.More {
				break
			}
			before = p.Summaries[len(p.Summaries)-1].Sequence
			if rapid.Bool().Draw(t, "moves") {
				moved := name.Draw(t, "moved")
				touch(moved)
				delete(steady, moved)
			}
		}
		seen := map[string]int{}
		var calm []string
		for _, g := range got {
			if seen[g]++; steady[g] {
				calm = append(calm, g)
			}
		}
		var model []string
		for i := len(want) - 1; i >= 0; i-- {
			if steady[want[i]] {
				model = append(model, want[i])
			}
		}
		require.Equal(t, model, calm)
		for s, n := range seen {
			require.Equal(t, 1, n, s)
		}
	})
}

// TestASummaryOfAnOlderFormat tells how the last run ended by its last event, until the log has news.
func TestASummaryOfAnOlderFormat(t *testing.T) {
	t.Parallel()
	for last, want := range map[event.Type]string{
		event.RunCompleted: "completed", event.RunFailed: "failed", event.RunCancelled: "cancelled", event.SessionCreated: "idle",
	} {
		s := index.Summary{Format: 2, Runs: 1, LastEvent: string(last)}
		require.Equal(t, want, s.State())
		s.Open = 1
		require.Equal(t, "running", s.State())
	}
}
