package plan_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/plan"
)

// graph draws tasks that depend on each other in any way, cycles included.
func graph(acyclic bool) *rapid.Generator[[]event.Step] {
	return rapid.Custom(func(t *rapid.T) []event.Step {
		n := rapid.IntRange(1, 8).Draw(t, "n")
		names := rapid.Permutation([]string{"a", "b", "c", "d", "e", "f", "g", "h"}).Draw(t, "names")[:n]
		tasks := make([]event.Step, n)
		for i := range tasks {
			tasks[i] = event.Step{ID: names[i], Title: "T", Priority: rapid.IntRange(0, 2).Draw(t, "priority")}
			for j := range n {
				if (j < i || !acyclic && j != i) && rapid.IntRange(0, 3).Draw(t, "edge") == 0 {
					tasks[i].Dependencies = append(tasks[i].Dependencies, names[j])
				}
			}
		}
		return rapid.Permutation(tasks).Draw(t, "order")
	})
}

func states(t *rapid.T, tasks []event.Step) (map[string]plan.State, func(string) plan.State) {
	m := map[string]plan.State{}
	for _, k := range tasks {
		m[k.ID] = rapid.SampledFrom([]plan.State{plan.Waiting, plan.Waiting, plan.Running, plan.Done, plan.Failed, plan.Cancelled}).Draw(t, k.ID)
	}
	return m, func(id string) plan.State { return m[id] }
}

// reach tells, by following every path, whether from leads to to.
func reach(tasks []event.Step, from, to string, left int) bool {
	if left == 0 {
		return false
	}
	i := slices.IndexFunc(tasks, func(t event.Step) bool { return t.ID == from })
	for _, d := range tasks[i].Dependencies {
		if d == to || reach(tasks, d, to, left-1) {
			return true
		}
	}
	return false
}

func TestCheckFindsEveryCycle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tasks := graph(false).Draw(t, "tasks")
		circular := slices.ContainsFunc(tasks, func(k event.Step) bool { return reach(tasks, k.ID, k.ID, len(tasks)) })
		err := plan.Check(tasks)
		require.Equal(t, circular, err != nil, "%v", err)
	})
}

func TestDependantsAreWhoReachesIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tasks := graph(true).Draw(t, "tasks")
		id := rapid.SampledFrom(tasks).Draw(t, "of").ID
		var want []string
		for _, k := range tasks {
			if reach(tasks, k.ID, id, len(tasks)) {
				want = append(want, k.ID)
			}
		}
		require.Equal(t, want, plan.Dependants(tasks, id))
	})
}

// TestDoomedIsWhatNeverStarts plays the rest of a run in which everything that starts
// is solved: what is left waiting is doomed, and nothing else.
func TestDoomedIsWhatNeverStarts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tasks := graph(true).Draw(t, "tasks")
		m, state := states(t, tasks)
		doomed := plan.Doomed(tasks, state)
		for id, s := range m {
			if s == plan.Running {
				m[id] = plan.Done
			}
		}
		for again := true; again; {
			again = false
			for _, id := range plan.Start(tasks, state, len(tasks)) {
				m[id], again = plan.Done, true
			}
		}
		var left []string
		for _, k := range tasks {
			if m[k.ID] == plan.Waiting {
				left = append(left, k.ID)
			}
		}
		require.Equal(t, left, doomed)
	})
}

func TestStartAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tasks := graph(true).Draw(t, "tasks")
		m, state := states(t, tasks)
		free := rapid.IntRange(-1, 9).Draw(t, "free")
		var want []string
		for priority := 0; priority <= 2; priority++ {
			for _, k := range tasks {
				ready := m[k.ID] == plan.Waiting && k.Priority == priority
				for _, d := range k.Dependencies {
					ready = ready && m[d] == plan.Done
				}
				if ready && len(want) < free {
					want = append(want, k.ID)
				}
			}
		}
		require.Equal(t, want, plan.Start(tasks, state, free))
	})
}

// TestOverrideIsLikeEditing: for members under their own names the result is that of
// editing the struct.
func TestOverrideIsLikeEditing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tasks := graph(true).Draw(t, "tasks")
		want := slices.Clone(tasks)
		var patch []map[string]any
		for range rapid.IntRange(0, 4).Draw(t, "changes") {
			i := rapid.IntRange(0, len(tasks)-1).Draw(t, "which")
			one := map[string]any{"id": tasks[i].ID}
			if rapid.Bool().Draw(t, "title") {
				want[i].Title = fmt.Sprint("T", rapid.IntRange(0, 9).Draw(t, "new title"))
				one["title"] = want[i].Title
			}
			if rapid.Bool().Draw(t, "priority") {
				want[i].Priority = rapid.IntRange(0, 9).Draw(t, "new priority")
				one["priority"] = want[i].Priority
			}
			if rapid.Bool().Draw(t, "dependencies") {
				want[i].Dependencies, one["dependencies"] = nil, []string{}
				if d := rapid.SampledFrom(tasks).Draw(t, "new dependency").ID; rapid.Bool().Draw(t, "any") {
					want[i].Dependencies, one["dependencies"] = []string{d}, []string{d}
				}
			}
			patch = append(patch, one)
		}
		raw, err := json.Marshal(patch)
		require.NoError(t, err)
		if patch == nil {
			raw = []byte(`[]`)
		}
		got, err := plan.Override(tasks, raw)
		if plan.Check(want) != nil {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

// settled checks what holds for every list that was let through: it passes Check, it
// is bounded, and making tasks of it again changes nothing.
func settled(t *testing.T, tasks []event.Step) {
	t.Helper()
	require.NoError(t, plan.Check(tasks))
	raw, err := json.Marshal(tasks)
	require.NoError(t, err)
	require.LessOrEqual(t, len(raw), plan.MaxBytes)
	require.True(t, utf8.Valid(raw))
	again, err := plan.CoerceTasks(raw)
	require.NoError(t, err)
	twice, err := json.Marshal(again)
	require.NoError(t, err)
	require.Equal(t, string(raw), string(twice))
}

func FuzzCoerce(f *testing.F) {
	for _, s := range []string{
		``, `[]`, `["a",]`, `{"tasks":[{"id":1,"name":"A","deps":[1]}]}`, "```json\n{\"plan\":[\"x\"]}\n```", `{"a":{"b":{"c":["x"]}}}`,
		`[{"title":"A","extra":{"title":"B","extra":5},"EXTRA":3}]`, `text {"tasks":[{"id":"a b","title":"t","depends_on":"a b"}]}`, "[\"\xff\"]",
		`[{"title":"A","Title":"B","TITLE":null}]`, `[{"id":"x","title":"A","extra":null,"priority":"1"}]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := plan.Coerce(raw)
		if err != nil {
			invalid(t, err)
			return
		}
		settled(t, p.Tasks)
		same, err := plan.Coerce(raw)
		require.NoError(t, err)
		require.Equal(t, p, same, "it is deterministic")
	})
}

func FuzzCoerceTasks(f *testing.F) {
	for _, s := range []string{``, `[]`, `{"title":"a"}`, `[{"id":"a","title":"A"},{"id":"b","title":"B","dependencies":["a"]}]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		tasks, err := plan.CoerceTasks(raw)
		if err != nil {
			invalid(t, err)
			return
		}
		settled(t, tasks)
	})
}

func FuzzOverride(f *testing.F) {
	for _, s := range []string{``, `[]`, `[{"id":"a","title":"x"}]`, `[{"id":"b","deps":"a","extra":{"id":1}},{"ID":"a","context":[1]}]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, patch []byte) {
		base := []event.Step{{ID: "a", Title: "A", Extra: []byte(`{"k":1}`)}, {ID: "b", Title: "B", Dependencies: []string{"a"}}}
		before, err := json.Marshal(base)
		require.NoError(t, err)
		tasks, err := plan.Override(base, patch)
		after, bad := json.Marshal(base)
		require.NoError(t, bad)
		require.Equal(t, string(before), string(after), "what was passed in is not changed")
		if err != nil {
			invalid(t, err)
			return
		}
		require.Len(t, tasks, 2)
		require.Equal(t, "a", tasks[0].ID)
		require.Equal(t, "b", tasks[1].ID)
		settled(t, tasks)
	})
}
