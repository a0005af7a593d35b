package binding

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// TestAddress: an intent in a log of each kind gets its service, key, verb and data.
func TestAddress(t *testing.T) {
	team := id.EntityFromExternal("team_0123456789abcdef")
	agent, err := id.MemberAgent(team, "Coder")
	require.NoError(t, err)
	nested, err := id.MemberTeam(team, "backend")
	require.NoError(t, err)
	deep, err := id.MemberAgent(nested, "Coder")
	require.NoError(t, err)
	session, task := id.EntityFromExternal("s"), id.EntityFromExternal("task with spaces")
	message := dialect.SendMessage{Content: "hi"}
	cancel, cancelPlan := dialect.Cancel{Reason: "enough", Pause: true}, dialect.CancelPlan{Reason: "enough", Pause: true}
	answer := dialect.Answer{InputID: "q1", Approved: true, Feedback: "go"}
	for name, c := range map[string]struct {
		kind    id.Kind
		key     id.Entity
		data    dialect.IntentData
		to      string // service.verb of the command; empty = the log does not take the intent
		wantKey id.Entity
		member  string
		want    string // data; empty = as it was
	}{
		"a session takes a message":           {id.KindSession, session, message, "pipeline.send_message", session, "Ada", ""},
		"and intents that only sessions take": {id.KindSession, session, dialect.RestartStep{StepID: "t"}, "pipeline.restart_step", session, "Ada", ""},
		"and another end of a plan":           {id.KindSession, session, cancelPlan, "pipeline.cancel_plan", session, "Ada", ""},
		"and none of teams":                   {id.KindSession, session, dialect.PauseTeam{}, "", session, "", ""},
		"a team takes a message":              {id.KindTeam, team, message, "team.send_message", team, "Ada", ""},
		"and an answer":                       {id.KindTeam, team, answer, "team.answer", team, "Ada", ""},
		"and is stopped":                      {id.KindTeam, team, cancel, "team.cancel", team, "Ada", ""},
		"also as a run with a plan":           {id.KindTeam, team, cancelPlan, "team.cancel", team, "Ada", ""},
		"and paused":                          {id.KindTeam, team, dialect.PauseTeam{}, "team.pause", team, "Ada", ""},
		"and resumed":                         {id.KindTeam, team, dialect.ResumeTeam{}, "team.resume", team, "Ada", ""},
		"but has no steps of a plan":          {id.KindTeam, team, dialect.CancelStep{}, "", team, "", ""},
		"nor another plan":                    {id.KindTeam, team, dialect.Replan{}, "", team, "", ""},
		"a nested team is one":                {id.KindTeam, nested, message, "team.send_message", nested, "Ada", ""},
		"a member's team takes its messages":  {id.KindMember, agent, message, "team.send_message", team, agent.String(), ""},
		"also in a nested one":                {id.KindMember, deep, answer, "team.answer", nested, deep.String(), ""},
		"and stops it alone":                  {id.KindMember, agent, cancel, "team.cancel", team, agent.String(), ""},
		"but does not pause it":               {id.KindMember, agent, dialect.PauseTeam{}, "", team, "", ""},
		"a member has no plan":                {id.KindMember, agent, dialect.Replan{}, "", team, "", ""},
		"a member of no team":                 {id.KindMember, session, message, "", team, "", ""},
		"a task's agent gets a message":       {id.KindTask, task, message, "task.message_task", task, "Ada", `{"task_id":"task with spaces","client_id":"","message_type":"client.message","message":"hi"}`},
		"with its attachments":                {id.KindTask, task, dialect.SendMessage{Content: "hi", Attachments: event.Attachments{ImageURLs: []string{"u"}}}, "task.message_task", task, "Ada", `{"task_id":"task with spaces","client_id":"","message_type":"client.message","message":{"text":"hi","image_urls":["u"]}}`},
		"and an answer to its question":       {id.KindTask, task, answer, "task.message_task", task, "Ada", `{"task_id":"task with spaces","client_id":"","request_id":"q1","message_type":"input_response","message":{"approved":true,"text":"go"}}`},
		"and the order to stop":               {id.KindTask, task, cancel, "task.cancel", task, "Ada", `{"task_id":"task with spaces","reason":"enough"}`},
		"also as one with a plan":             {id.KindTask, task, cancelPlan, "task.cancel", task, "Ada", `{"task_id":"task with spaces","reason":"enough"}`},
		"but no pause":                        {id.KindTask, task, dialect.PauseTeam{}, "", task, "", ""},
		"nor another plan of it":              {id.KindTask, task, dialect.Replan{}, "", task, "", ""},
		"and intents of the swarm":            {id.KindTask, task, dialect.FinishTask{TaskID: "x", Result: json.RawMessage(`"<&>"`)}, "task.finish", task, "Ada", ""},
		"which a session does not take":       {id.KindSession, session, dialect.FinishTask{}, "", session, "", ""},
		"an inbox takes nothing":              {id.KindInbox, session, message, "", session, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			log := subject.Log{Tenant: id.DefaultTenant, Kind: c.kind, Entity: c.key}
			got, err := address(log, "task with spaces", dialect.Intent{ID: "c1", Request: "r1", Member: "Ada", Data: c.data})
			if c.to == "" {
				f, ok := errors.AsType[*fault.Fault](err)
				require.True(t, ok, "%v", err)
				require.Contains(t, []fault.Code{fault.UnknownType, fault.AgentNotFound}, f.Code)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.to, got.Service.String()+"."+got.Verb.String())
			if c.want == "" {
				data, err := json.Marshal(c.data)
				require.NoError(t, err)
				c.want = string(data)
			}
			require.JSONEq(t, c.want, string(got.Data))
			got.Service, got.Verb, got.Data = id.Name{}, id.Name{}, nil
			require.Equal(t, command.Command{ID: "c1", Request: "r1", Tenant: id.DefaultTenant, Key: c.wantKey, Member: c.member}, got)
		})
	}
}

// TestAnImpossibleIntentIsNamed: the fault names the kind and the action.
func TestAnImpossibleIntentIsNamed(t *testing.T) {
	log := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTeam, Entity: id.EntityFromExternal("t")}
	_, err := address(log, "t", dialect.Intent{ID: "c1", Data: dialect.Replan{}})
	require.EqualError(t, err, "UNKNOWN_MESSAGE_TYPE: Runs of kind team do not accept replan. Send a message, an answer to a question, or cancel.")
}

// TestCommandsAreComplete: all intents become commands or none does, and the name of a task is that of the target.
func TestCommandsAreComplete(t *testing.T) {
	log := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTask, Entity: id.EntityFromExternal("a task")}
	intents := []dialect.Intent{{ID: "c1", Data: dialect.Cancel{}}, {ID: "c2", Data: dialect.SendMessage{Content: "hi"}}}
	cmds, err := Commands(&Target{Kind: id.KindTask, Name: "a task"}, log, intents...)
	require.NoError(t, err)
	require.Len(t, cmds, 2)
	for i, c := range cmds {
		require.Equal(t, intents[i].ID, c.ID)
		require.Contains(t, string(c.Data), `"task_id":"a task"`)
	}
	cmds, err = Commands(nil, log, append(intents, dialect.Intent{ID: "c3", Data: dialect.Replan{}})...)
	require.ErrorIs(t, err, fault.New(fault.UnknownType))
	require.Empty(t, cmds, "all of a frame's intents are possible, or none has an effect")
}

// TestTheTableHasEveryIntent: each type of intent has a row with a route that can encode it, and each inquiry has a
// request.
func TestTheTableHasEveryIntent(t *testing.T) {
	require.Equal(t, names(t, "action"), slices.Sorted(maps.Keys(table)))
	require.Equal(t, names(t, "inquiry"), slices.Sorted(maps.Keys(requests)))
	for action, kinds := range table {
		require.NotEmpty(t, kinds, action)
		for kind, r := range kinds {
			require.False(t, r.service.IsZero() || r.verb.IsZero(), "%s in a %s", action, kind)
		}
	}
	for topic, r := range requests {
		require.False(t, r.Service.IsZero() || r.Verb.IsZero(), topic)
	}
	for _, r := range rows {
		for kind, to := range r.log {
			_, err := to.encode("t", r.of)
			require.NoError(t, err, "%T in a %s", r.of, kind)
		}
	}
}

// names returns the names of the intents or of the inquiries, which the methods of package dialect return.
func names(t *testing.T, method string) (out []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../dialect/intents.go", nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil || f.Name.Name != method {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok {
				name, err := strconv.Unquote(lit.Value)
				require.NoError(t, err)
				out = append(out, name)
			}
			return true
		})
	}
	slices.Sort(out)
	require.NotEmpty(t, out)
	return out
}
