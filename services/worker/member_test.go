package worker_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/payload"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/scripted"
	"github.com/waggle-dev/waggle/services/worker"
)

func offered(x *scripted.Exchange) []string {
	var names []string
	for _, t := range x.Prompt.Tools {
		names = append(names, t.Name)
	}
	return names
}

// TestAMemberIsWhoItsDefinitionSays: its role, its model, its tools.
func TestAMemberIsWhoItsDefinitionSays(t *testing.T) {
	r := newMember(t, scripted.Sequence(
		scripted.Stream(scripted.Calls(9, scripted.Call{ID: "c", Name: "workspace_read_file", Arguments: `{"path":"notes.md"}`}), scripted.Usage(1, 2)),
		scripted.Stream(scripted.Text("done"), scripted.Usage(3, 4))),
		func(d *event.MemberCreatedData) {
			d.Model, d.Tools = "big", []string{"bank/pay", "workspace/list_files", "nobody/*"}
		})
	r.worker("w1", func(c *worker.Config) {
		c.System, c.Prices = "You work for Bees & Co.", worker.Prices{"big": {InputPerMillion: 1, OutputPerMillion: 1}}
	})
	events := r.until(r.ask("hello"), event.RunCompleted)
	x, err := r.llm.Exchange(r.Ctx, 1)
	require.NoError(t, err)
	require.Equal(t, "big", x.Model)
	require.Equal(t, []string{
		"bank_pay", "create_tasks", "list_tasks", "send_message_to", "update_task_status", "update_todos", "workspace_list_files",
	}, offered(x))
	for _, told := range []string{"Bees & Co.", "You are Coder", "the team Hive", "writes code", "Be brief.", "Boss: leads", "docs: a team"} {
		require.Contains(t, x.Prompt.System, told)
	}
	require.Equal(t, "openai:big", all[event.JobStartedData](t, events)[0].Model)
	require.Equal(t, "openai:big", all[event.MessageStartedData](t, events)[0].Model)
	used := all[event.UsageRecordedData](t, events)
	require.Len(t, used, 2)
	require.Equal(t, "big", used[0].Model)
	require.NotNil(t, used[0].CostUSD)
	failed := all[event.ToolFailedData](t, events)
	require.Len(t, failed, 1, "what is not offered does not run")
	require.Equal(t, string(fault.ToolNotFound), failed[0].Code)
	require.Zero(t, servicetest.Count(events, event.InputRequested))
}

// TestAMemberWithoutToolsNeedsNoToolServer, and has those of its team all the same.
func TestAMemberWithoutTools(t *testing.T) {
	r := newMember(t, scripted.Sequence(
		scripted.Stream(scripted.Calls(9, scripted.Call{ID: "c", Name: "workspace_list_files", Arguments: `{}`})),
		scripted.Stream(scripted.Text("done"))),
		func(d *event.MemberCreatedData) { d.Tools, d.Colleagues, d.AutoExecuteTools = nil, nil, true })
	r.worker("w1", nil)
	events := r.until(r.ask("hello"), event.RunCompleted)
	x, err := r.llm.Exchange(r.Ctx, 1)
	require.NoError(t, err)
	require.Equal(t, []string{"create_tasks", "list_tasks", "update_task_status", "update_todos"}, offered(x))
	require.NotContains(t, x.Prompt.System, cmd.ToolSendMessage)
	failed := all[event.ToolFailedData](t, events)
	require.Len(t, failed, 1)
	require.Equal(t, string(fault.ToolNotFound), failed[0].Code)
}

func tool(id, name, args string) scripted.Call {
	return scripted.Call{ID: id, Name: name, Arguments: args}
}

// TestTheTeamIsAskedUntilItAnswers: answers get lost, and everything happens once.
func TestTheTeamIsAskedUntilItAnswers(t *testing.T) {
	r := newMember(t, scripted.Sequence(
		scripted.Stream(scripted.Calls(9, tool("a", cmd.ToolSendMessage, `{"recipient_name":"Boss","content":"ready"}`))),
		scripted.Stream(scripted.Calls(9, tool("b", cmd.ToolUpdateTask, `{"task_id":"task_0001","new_status":"completed"}`))),
		scripted.Stream(scripted.Text("done"))), nil)
	r.team.deaf = 2
	r.worker("w1", func(c *worker.Config) { c.TeamMaxWait = 50 * time.Millisecond })
	run := r.ask("report")
	events := r.until(run, event.RunCompleted)
	acts, asked := r.team.did()
	require.Len(t, acts, 2, "each once")
	require.GreaterOrEqual(t, asked[0], 3, "the first was asked for until there was an answer")
	r.team.mu.Lock() // further requests may be on their way
	defer r.team.mu.Unlock()
	for _, ids := range r.team.asked {
		slices.Sort(ids)
		require.Len(t, slices.Compact(ids), len(ids), "each time with another id: the bus drops repeats")
	}
	require.Equal(t, cmd.ToolSendMessage, acts[0].Tool)
	require.Equal(t, "Coder", acts[0].Member)
	require.Equal(t, r.ref.Entity.String(), acts[0].AgentID)
	require.Equal(t, run, acts[0].RunID)
	require.JSONEq(t, `{"recipient_name":"Boss","content":"ready"}`, string(acts[0].Arguments))
	called := all[event.ToolCalledData](t, events)
	require.Len(t, called, 2)
	require.Equal(t, acts[0].CallID, called[0].CallID)
	require.True(t, called[0].Idempotent)
	require.Empty(t, called[0].InputID, "nobody is asked about the tools of the team")
	require.Equal(t, "the team has done send_message_to", all[event.ToolCompletedData](t, events)[0].Result)
}

// TestAnotherWorkerAsksTheTeamAgain: the worker dies while the team has the call.
func TestAnotherWorkerAsksTheTeamAgain(t *testing.T) {
	r := newMember(t, scripted.Sequence(
		scripted.Stream(scripted.Calls(9, tool("a", cmd.ToolCreateTasks, `{"tasks":[{"task_name":"x","description":"do x"}]}`))),
		scripted.Stream(scripted.Text("done"))), nil)
	r.team.deaf = 1
	_, cut := r.worker("w1", hasty)
	run := r.ask("plan")
	<-r.team.heard
	r.worker("w2", hasty)
	cut.NATS().Close()
	events := r.until(run, event.RunCompleted)
	acts, asked := r.team.did()
	require.Len(t, acts, 1)
	require.Equal(t, []int{2}, asked)
	require.Equal(t, 1, servicetest.Count(events, event.ToolCompleted))
	started := all[event.ToolStartedData](t, events)
	require.True(t, started[len(started)-1].Retry)
	for _, s := range started {
		require.JSONEq(t, string(acts[0].Arguments), string(s.Arguments), "what the tool is given is said where it begins")
	}
}

// TestWhatAMemberGetsWrong: calls that break the schema never reach the team; the model gets the
// team's refusals.
func TestWhatAMemberGetsWrong(t *testing.T) {
	bad := []scripted.Call{
		tool("a", cmd.ToolSendMessage, `{"recipient_name":"Nobody","content":"x"}`),
		tool("b", cmd.ToolSendMessage, `{"recipient_name":"Boss"}`),
		tool("c", cmd.ToolCreateTasks, `{"tasks":[{"task_name":"x","description":"d"},{"description":"without a name"}]}`),
		tool("d", cmd.ToolUpdateTask, `{"task_id":"x","new_status":"finished"}`),
		tool("e", cmd.ToolUpdateTodos, `{"todos":[{"description":"x","status":"maybe"}]}`),
		tool("f", cmd.ToolUpdateTodos, `{"todos":[{"todo_id":"1","description":"x","status":"done"},{"todo_id":"1","description":"y","status":"done"}]}`),
	}
	r := newMember(t, scripted.Sequence(
		scripted.Stream(scripted.Calls(9, bad...)),
		scripted.Stream(scripted.Calls(9, tool("g", cmd.ToolCreateTasks, `{"tasks":[{"id":"1","description":"in the short form"}]}`))),
		scripted.Stream(scripted.Text("sorry"))), nil)
	r.team.refuse[cmd.ToolCreateTasks] = event.TeamActedData{Code: string(fault.TeamClosed), Message: "The team is gone."}
	r.worker("w1", nil)
	events := r.until(r.ask("try"), event.RunCompleted)
	acts, _ := r.team.did()
	require.Len(t, acts, 1)
	names := map[string]string{}
	for _, d := range all[event.ToolCalledData](t, events) {
		names[d.CallID] = string(d.Arguments)
	}
	where := map[string]string{}
	for _, d := range all[event.ToolFailedData](t, events) {
		where[names[d.CallID]] = d.Code + " " + d.Message
	}
	for i, at := range []string{"/recipient_name", "content", "/tasks/1", "/new_status", "/todos/0/status", "todo_id"} {
		require.Contains(t, where[bad[i].Arguments], string(fault.ToolBadInput))
		require.Contains(t, where[bad[i].Arguments], at)
	}
	require.Equal(t, "TEAM_CLOSED The team is gone.", where[`{"tasks":[{"id":"1","description":"in the short form"}]}`])
	require.Zero(t, servicetest.Count(events, event.TodosUpdated))
}

func TestAMembersListOfThingsToDo(t *testing.T) {
	r := newMember(t, scripted.Sequence(
		scripted.Stream(scripted.Calls(9, tool("a", cmd.ToolUpdateTodos,
			`{"todos":[{"description":"read","status":"done"},{"todo_id":"todo_1","description":"write","status":"in_progress"},{"description":"rest","status":"pending"}]}`))),
		scripted.Stream(scripted.Calls(9, tool("b", cmd.ToolUpdateTodos, `{"todos":[]}`))),
		scripted.Stream(scripted.Text("done"))), nil)
	r.worker("w1", nil)
	run := r.ask("plan your day")
	events := r.until(run, event.RunCompleted)
	lists := all[event.TodosUpdatedData](t, events)
	require.Len(t, lists, 2)
	require.Equal(t, []event.Todo{
		{TodoID: "todo_2", Description: "read", Status: event.TodoDone},
		{TodoID: "todo_1", Description: "write", Status: event.TodoInProgress},
		{TodoID: "todo_3", Description: "rest", Status: event.TodoPending},
	}, lists[0].Todos)
	called := all[event.ToolCalledData](t, events)
	require.Equal(t, called[0].CallID, lists[0].CallID)
	require.Equal(t, run, lists[0].RunID)
	require.NotNil(t, lists[1].Todos)
	require.Empty(t, lists[1].Todos)
	acts, _ := r.team.did()
	require.Empty(t, acts, "it is the member's own business")
	x, err := r.llm.Exchange(r.Ctx, 2)
	require.NoError(t, err)
	require.Contains(t, x.Prompt.Messages[len(x.Prompt.Messages)-1].Content, "todo_2 (done): read")
}

func TestFilesThatAMemberMakes(t *testing.T) {
	write := func(id, path string) scripted.Call {
		raw, err := json.Marshal(map[string]any{"path": path, "content": "x"})
		require.NoError(t, err)
		return tool(id, "workspace_write_file", string(raw))
	}
	r := newMember(t, scripted.Sequence(
		scripted.Stream(scripted.Calls(9, write("a", "out/./plan.md"))),
		scripted.Stream(scripted.Calls(9, write("b", "out/plan.md"), write("c", "logo.SVG"), write("d", "../no.md"),
			tool("e", "workspace_read_file", `{"path":"notes.md"}`))),
		scripted.Stream(scripted.Text("done"))),
		func(d *event.MemberCreatedData) { d.AutoExecuteTools = true })
	r.worker("w1", nil)
	run := r.ask("write")
	events := r.until(run, event.RunCompleted)
	made, changed := all[event.ArtifactPersistedData](t, events), all[event.ArtifactUpdatedData](t, events)
	require.Len(t, made, 2)
	require.Len(t, changed, 1)
	require.Equal(t, "out/plan.md", made[0].Path)
	require.Equal(t, "file", made[0].Type)
	require.Equal(t, "image", made[1].Type)
	require.Equal(t, made[0].ArtifactID, changed[0].ArtifactID, "it is the same file")
	require.NotEqual(t, made[0].ArtifactID, made[1].ArtifactID)
	require.Equal(t, r.ref.Entity.String(), made[0].AgentID)
	require.Equal(t, run, made[0].RunID)
	require.Equal(t, all[event.ToolCalledData](t, events)[0].CallID, made[0].CallID)
	require.Zero(t, servicetest.Count(events, event.InputRequested), "this member is not supervised")
}

// TestFilesThatAMemberMakesAreKept: as each call has left them, whole where it extends a file. A larger file is told of without.
func TestFilesThatAMemberMakesAreKept(t *testing.T) {
	large := strings.Repeat("y", event.MaxArtifact)
	write := func(id, path, text string, more bool) scripted.Reply {
		raw, err := json.Marshal(map[string]any{"path": path, "content": text, "append": more})
		require.NoError(t, err)
		return scripted.Stream(scripted.Calls(0, tool(id, "workspace_write_file", string(raw))))
	}
	r := newMember(t, scripted.Sequence(
		write("a", "plan.md", "", false), write("b", "plan.md", "ein <Häuschen>", false), write("c", "plan.md", "\n& more", true),
		write("d", "large.txt", "z", true), write("e", "plan.md", "new", false), scripted.Stream(scripted.Text("done"))),
		func(d *event.MemberCreatedData) { d.AutoExecuteTools = true })
	require.NoError(t, os.WriteFile(filepath.Join(r.workspace, "large.txt"), []byte(large), 0o600))
	r.worker("w1", nil)
	events := r.until(r.ask("write"), event.RunCompleted)
	var files []event.Artifact
	for _, e := range events {
		var d event.Artifact
		if e.Type == event.ArtifactPersisted || e.Type == event.ArtifactUpdated {
			require.NoError(t, e.Decode(&d))
			files = append(files, d)
		}
	}
	require.Len(t, files, 5)
	for i, want := range []string{"", "ein <Häuschen>", "ein <Häuschen>\n& more", large + "z", "new"} {
		a := files[i]
		if len(want) > event.MaxArtifact {
			require.Nil(t, a.Object)
			continue
		}
		require.Equal(t, r.ref.Local(), a.Object.Log, "it goes where the log goes")
		raw, err := payload.New(r.Conn).Get(r.Ctx, r.ref.Tenant, *a.Object)
		require.NoError(t, err)
		var f event.ArtifactFile
		require.NoError(t, json.Unmarshal(raw, &f))
		require.Equal(t, want, string(f.Contents))
		require.Equal(t, event.ArtifactFile{ArtifactID: a.ArtifactID, Path: "plan.md", Contents: f.Contents}, f)
		require.EqualValues(t, len(want), a.Size)
	}
	notices := all[event.NoticeData](t, events)
	require.Len(t, notices, 1, "people are told that the file has no contents")
	require.Contains(t, notices[0].Message, "large.txt")
}

// TestAMemberKnowsWhoWrites: what colleagues write, and what came with it, is in what the
// model is asked.
func TestAMemberKnowsWhoWrites(t *testing.T) {
	r := newMember(t, scripted.Always(scripted.Stream(scripted.Text("understood"))), nil)
	r.worker("w1", nil)
	m := cmd.UserMessage{Content: "please review", Sender: &event.Sender{Kind: event.SenderAgent, ID: "x", Name: "Boss", Route: "Boss"}}
	m.ContextFiles = []string{"src/main.go"}
	r.until(r.send1(m), event.RunCompleted)
	x, err := r.llm.Exchange(r.Ctx, 1)
	require.NoError(t, err)
	said := x.Prompt.Messages[len(x.Prompt.Messages)-1]
	require.Equal(t, model.RoleUser, said.Role)
	for _, part := range []string{"Boss", "please review", "src/main.go"} {
		require.True(t, strings.Contains(said.Content, part), said.Content)
	}
}
