package plan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/plan"
)

// brief writes tasks as "id(dep,dep) title", one a line.
func brief(tasks []event.Step) string {
	var lines []string
	for _, t := range tasks {
		lines = append(lines, fmt.Sprintf("%s(%s) %s", t.ID, strings.Join(t.Dependencies, ","), t.Title))
	}
	return strings.Join(lines, "\n")
}

func invalid(t *testing.T, err error) *fault.Fault {
	t.Helper()
	require.ErrorIs(t, err, fault.New(fault.PlanInvalid))
	f, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok)
	require.NotEmpty(t, f.Message)
	require.Less(t, len(f.Message), 2_000)
	require.NotEmpty(t, f.Field)
	return f
}

func TestCoerceWhatModelsWrite(t *testing.T) {
	for name, c := range map[string]struct{ raw, want string }{
		"plain":          {`{"tasks":[{"id":"a","title":"A"},{"id":"b","title":"B","dependencies":["a"]}]}`, "a() A\nb(a) B"},
		"wrapped":        {`{"plan":{"tasks":[{"id":"a","title":"A"}]}}`, "a() A"},
		"plan is a list": {`{"plan":[{"id":"a","title":"A"}]}`, "a() A"},
		"only member":    {`{"my_answer":{"Steps":[{"id":"a","title":"A"}]}}`, "a() A"},
		"bare list":      {`[{"title":"A"},{"title":"B"}]`, "task_1() A\ntask_2() B"},
		"titles":         {`["A","B"]`, "task_1() A\ntask_2() B"},
		"one task":       {`{"id":"a","title":"A"}`, "a() A"},
		"fence":          {"```json\n[{\"title\":\"A\"}]\n```", "task_1() A"},
		"fence in prose": {"Here you are:\n```\n{\"tasks\":[\"A\"]}\n```\nGood luck!", "task_1() A"},
		"prose":          {`I read [1] and {"x":1}. The plan: {"tasks":[{"title":"A"}]} Done.`, "task_1() A"},
		"strings first":  {`Files ["a.md"], plan [{"title":"A"}]`, "task_1() A"},
		"BOM":            {"\uFEFF[\"A\"]", "task_1() A"},
		"quoted":         {`"{\"tasks\":[\"A\"]}"`, "task_1() A"},
		"commas":         {`{"tasks":[{"title":"A, ]",},],}`, "task_1() A, ]"},
		"commas, prose":  {`It's this: [{"title":"A",},]`, "task_1() A"},
		"other names": {
			`{"Sub-Tasks":[{"taskId":1,"name":"A"},{"task_id":2,"Name":"B","depends_on":[1]},{"step_id":"3","label":"C","deps":"1, 2"}]}`,
			"1() A\n2(1) B\n3(1,2) C",
		},
		"numbered":         {`[{"title":"A"},{"title":"B","deps":[1]},{"title":"C","deps":["task 2","Step_1"]}]`, "task_1() A\ntask_2(task_1) B\ntask_3(task_2,task_1) C"},
		"numeric, by name": {`[{"id":1,"title":"A"},{"id":2,"title":"B","deps":["task_1"]}]`, "1() A\n2(1) B"},
		"by title":         {`[{"title":"Get it"},{"title":"B","depends_on":"get it"}]`, "task_1() Get it\ntask_2(task_1) B"},
		"objects":          {`[{"id":"a","title":"A"},{"id":"b","title":"B","dependencies":[{"id":"a"}]}]`, "a() A\nb(a) B"},
		"none":             {`[{"id":"a","title":"A","dependencies":["none"]},{"id":"b","title":"B","dependencies":null}]`, "a() A\nb() B"},
		"odd ids":          {`[{"id":"Step 1.1","title":"A"},{"id":"b:2","title":"B","deps":["Step 1.1"]}]`, "Step_1_1() A\nb_2(Step_1_1) B"},
		"twice":            {`[{"id":"a","title":"A"},{"id":"b","title":"B","deps":["a","a"]}]`, "a() A\nb(a) B"},
		"taken":            {`[{"id":"task_2","title":"A"},{"title":"B"}]`, "task_2() A\ntask_2_2() B"},
		"no title":         {`[{"id":"a","objective":"Do this.\nAnd that."}]`, "a() Do this."},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := plan.Coerce([]byte(c.raw))
			require.NoError(t, err)
			require.Equal(t, c.want, brief(p.Tasks))
		})
	}
}

func TestCoerceKeepsEverything(t *testing.T) {
	p, err := plan.Coerce([]byte(`{"plan_summary":" sum ","rationale":"why","tasks":[{"id":"a","title":"A","objective":"do","notes":"n",
		"priority":"high","capability":"maths","context":{"k":[1, 2]},"estimated_tokens":12.0,"estimated_time":30,"tool_hint":{"x":1},"name":"second"}]}`))
	require.NoError(t, err)
	require.Equal(t, "sum", p.Summary)
	require.Equal(t, "why", p.Reasoning)
	raw, err := json.Marshal(p.Tasks[0])
	require.NoError(t, err)
	require.JSONEq(t, `{"id":"a","title":"A","description":"do","priority":1,"capability":"maths","context":{"k":[1,2]},
		"estimated_tokens":12,"estimated_time_seconds":30,"extra":{"notes":"n","tool_hint":{"x":1},"name":"second"}}`, string(raw))

	p, err = plan.Coerce([]byte(`[{"title":"A","priority":"whenever","estimated_tokens":"many","context":null}]`))
	require.NoError(t, err)
	require.JSONEq(t, `{"priority":"whenever","estimated_tokens":"many"}`, string(p.Tasks[0].Extra), "what cannot be used is kept")
	require.Empty(t, p.Tasks[0].Context)
}

func TestLongTextsAreCutWhereTheyMayBe(t *testing.T) {
	long := strings.Repeat("wörd ", 100)
	raw, err := json.Marshal(map[string]any{"tasks": []any{long, map[string]string{"title": "A\nB", "description": "C"}}, "reasoning": strings.Repeat("é", 9_000)})
	require.NoError(t, err)
	p, err := plan.Coerce(raw)
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(long), p.Tasks[0].Description, "nothing of a task is lost")
	require.True(t, strings.HasSuffix(p.Tasks[0].Title, "..."))
	require.Equal(t, "A", p.Tasks[1].Title)
	require.Equal(t, "A\nB\n\nC", p.Tasks[1].Description)
	require.True(t, strings.HasSuffix(p.Reasoning, "é..."))
	require.LessOrEqual(t, len(p.Reasoning), 8<<10)
}

func TestWhatIsNoPlan(t *testing.T) {
	many := "[" + strings.Repeat(`{"title":"A"},`, 100) + `{"title":"A"}]`
	for name, c := range map[string]struct{ raw, text, field string }{
		"nothing":     {"", "This text holds no plan", "tasks"},
		"prose":       {"I would first look around, then decide.", "This text holds no plan", "tasks"},
		"broken":      {`{"tasks":[{"title":"A"`, "This text holds no plan", "tasks"},
		"numbers":     {`[1,2]`, "This text holds no plan", "tasks"},
		"empty":       {`{"tasks":[]}`, "the list is empty", "tasks"},
		"too many":    {many, "101 tasks: 100 are allowed", "tasks"},
		"no title":    {`[{"id":"a"}]`, `task "a" has no title`, "tasks[0].title"},
		"blank title": {`["  "]`, `task "task_1" has no title`, "tasks[0].title"},
		"same id":     {`[{"id":"a","title":"A"},{"id":"a","title":"B"}]`, `tasks 1 and 2 have the same id "a"`, "tasks[1].id"},
		"itself":      {`[{"id":"a","title":"A","deps":["a"]}]`, `task "a" depends on itself`, "tasks[0].dependencies"},
		"unknown":     {`[{"id":"a","title":"A","deps":["z"]}]`, `depends on "z", which is not in the list`, "tasks[0].dependencies"},
		"cycle": {
			`[{"id":"x","title":"X","deps":["a"]},{"id":"a","title":"A","deps":["c"]},{"id":"b","title":"B","deps":["a"]},{"id":"c","title":"C","deps":["b"]}]`,
			`"a" needs "c" needs "b" needs "a"`, "tasks",
		},
		"several":  {`[{"id":"a"},{"id":"a"},{"id":"b"},{"id":"c"},{"id":"d"}]`, "; and 1 more", "tasks[0].title"},
		"bad deps": {`[{"id":"a","title":"A","deps":[[1]]}]`, "has a deps that cannot be understood", "tasks[0]"},
		"bad id":   {`[{"id":{"x":1},"title":"A"}]`, "has a id that cannot be understood", "tasks[0]"},
		"too big":  {`["` + strings.Repeat("x", plan.MaxBytes) + `"]`, "bytes of JSON", "tasks"},
		"huge":     {strings.Repeat("x", 2<<20), "are allowed", "tasks"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := plan.Coerce([]byte(c.raw))
			f := invalid(t, err)
			require.Contains(t, f.Message, c.text)
			require.Equal(t, c.field, f.Field)
		})
	}
}

func TestALongCycleIsCut(t *testing.T) {
	tasks := make([]event.Step, plan.MaxTasks)
	for i := range tasks {
		tasks[i] = event.Step{ID: fmt.Sprintf("%0128d", i), Title: "T", Dependencies: []string{fmt.Sprintf("%0128d", (i+1)%len(tasks))}}
	}
	require.Contains(t, invalid(t, plan.Check(tasks)).Message, "...")
}

func TestCoerceTasks(t *testing.T) {
	tasks, err := plan.CoerceTasks([]byte(` [{"id":"a","title":"A"},{"name":"B","depends_on":["a"]}]`))
	require.NoError(t, err)
	require.Equal(t, "a() A\ntask_2(a) B", brief(tasks))
	tasks, err = plan.CoerceTasks([]byte(`{"title":"only"}`))
	require.NoError(t, err)
	require.Equal(t, "task_1() only", brief(tasks))
	for raw, text := range map[string]string{
		"":                              "not a list",
		"null":                          "not a list",
		`"A"`:                           "not a list",
		`[`:                             "not valid JSON",
		`[]`:                            "the list is empty",
		`[3]`:                           "neither an object nor a text",
		`[{"id":"a b","title":"A"}]`:    `has the id "a b"`,
		"{\"tasks\":[]}":                "has no title",
		strings.Repeat(" ", 2<<20):      "are allowed",
		`[{"title":"A","id":"\u0000"}]`: "an id has 1 to 128",
	} {
		_, err := plan.CoerceTasks([]byte(raw))
		require.Contains(t, invalid(t, err).Message, text, "%.40s", raw)
	}
}

func TestOverride(t *testing.T) {
	base, err := plan.CoerceTasks([]byte(`[{"id":"a","title":"A","priority":2,"x":1},{"id":"b","title":"B","dependencies":["a"]}]`))
	require.NoError(t, err)
	before := brief(base)
	got, err := plan.Override(base, []byte(`[{"id":"b","title":"B2","dependencies":null,"y":2},{"id":"a","priority":0,"objective":"o"}]`))
	require.NoError(t, err)
	require.Equal(t, "a() A\nb() B2", brief(got))
	require.Equal(t, before, brief(base), "the tasks that were passed in are not changed")
	raw, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, `[{"id":"a","title":"A","description":"o","extra":{"x":1}},{"id":"b","title":"B2","extra":{"y":2}}]`, string(raw))

	same, err := plan.Override(base, []byte(`[]`))
	require.NoError(t, err)
	require.Equal(t, base, same)
	for patch, text := range map[string]string{
		``: "not a list", `{}`: "not a list", `[1]`: "is not an object", `[{"title":"x"}]`: "names no task",
		`[{"id":"z"}]`: `names the task "z"`, `[{"id":"a","deps":["b"]}]`: "in a circle", `[{"id":"a","title":""}]`: "has no title",
		`[{"id":"a","deps":["q"]}]`: `depends on "q"`, `[{"id":"a","deps":{}}]`: "cannot be understood",
	} {
		_, err := plan.Override(base, []byte(patch))
		require.Contains(t, invalid(t, err).Message, text, patch)
	}
}

func TestStartFollowsPriorityThenOrder(t *testing.T) {
	tasks := []event.Step{
		{ID: "a", Priority: 2},
		{ID: "b", Priority: 1},
		{ID: "c", Priority: 1},
		{ID: "d", Priority: 0, Dependencies: []string{"a"}},
	}
	states := map[string]plan.State{}
	state := func(id string) plan.State { return states[id] }
	require.Equal(t, []string{"b", "c", "a"}, plan.Start(tasks, state, 9))
	require.Equal(t, []string{"b", "c"}, plan.Start(tasks, state, 2))
	require.Empty(t, plan.Start(tasks, state, 0))
	require.Empty(t, plan.Start(tasks, state, -1))
	states["a"] = plan.Done
	require.Equal(t, "d", plan.Start(tasks, state, 1)[0])
	states["a"] = plan.Failed
	require.Equal(t, []string{"d"}, plan.Doomed(tasks, state))
	require.Equal(t, []string{"d"}, plan.Dependants(tasks, "a"))
	require.Empty(t, plan.Dependants(tasks, "z"))
	require.False(t, slices.Contains(plan.Start(tasks, state, 9), "d"))
}
