package e2e_test

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/models"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/verify"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// paper is a team of three, one of which is a team of two, one of which is a team of two.
// People are asked before Chief writes and before Clerk reads.
var paper = object{
	"name": "paper", "coordinator": "Editor",
	"members": []object{
		{"name": "Editor", "role": "plans the paper", "instructions": "Put what is to be done on the board."},
		{"name": "Writer", "role": "writes", "tools": []string{"workspace/write_file", "workspace/read_file"}, "auto_execute_tools": true},
		{"name": "desk", "role": "checks what is written", "team": object{
			"name": "desk", "coordinator": "Chief",
			"members": []object{
				{"name": "Chief", "tools": []string{"workspace/write_file"}},
				{"name": "archive", "team": object{
					"name": "archive", "coordinator": "Archivist",
					"members": []object{{"name": "Archivist"}, {"name": "Clerk", "tools": []string{"workspace/read_file"}}},
				}},
			},
		}},
	},
}

const (
	chief     = "desk/Chief"
	archivist = "desk/archive/Archivist"
	clerk     = "desk/archive/Clerk"
)

// updates answers with a change of a task on the board.
func updates(task, status string, files ...object) models.Reply {
	a := object{"task_id": task, "new_status": status}
	if files != nil {
		a["deliverables"] = files
	}
	return models.Calls("update_task_status", a)
}

func writesFile(path, content string) models.Reply {
	return models.Calls("workspace_write_file", object{"path": path, "content": content})
}

func readsFile(path string) models.Reply {
	return models.Calls("workspace_read_file", object{"path": path})
}

// paperCast is what the members of the paper say.
func paperCast(never <-chan struct{}) models.Team {
	return models.Team{
		"Editor: make the paper": {
			models.Calls("update_todos", object{"todos": []object{
				{"description": "fill the board", "status": "in_progress"}, {"description": "wait", "status": "pending"},
			}}),
			models.Calls("create_tasks", object{"tasks": []object{
				{"task_name": "facts", "assignee_name": "Writer", "description": "Collect the facts."},
				{"id": "draft", "assignee_name": "desk", "description": "Make a draft.", "dependencies": []string{"facts"}},
				{"task_name": "check", "assignee_name": "Editor", "description": "Check the facts.", "dependencies": []string{"facts"}},
				{
					"task_name": "print", "assignee_name": "Writer", "description": "Print it.", "dependencies": []string{"draft", "check"},
					"file_deliverables": []object{{"file_path": "paper.txt", "summary": "the paper"}},
				},
			}}),
			models.Calls("create_tasks", object{"tasks": []object{
				{"task_name": "a", "description": "a", "dependencies": []string{"b"}}, {"task_name": "b", "description": "b", "dependencies": []string{"a"}},
			}}),
			models.Says("The board is full."),
		},
		"Writer: task facts": {
			updates("facts", "in_progress"),
			writesFile("facts.txt", "one"), writesFile("facts.txt", "one and two"),
			readsFile("nothing.txt"), models.Calls("workspace_dance", object{}),
			updates("task_0001", "completed", object{"file_path": "facts.txt", "summary": "the facts"}),
			models.Says("The facts are there."),
		},
		"Chief: task draft": {
			models.Writes("archive", "who was it?"), models.Says("I have asked."),
		},
		"Archivist: Chief says who was it?":    {models.Writes("Clerk", "look it up"), models.Says("Clerk looks it up.")},
		"Clerk: Archivist says look it up":     {readsFile("notes.md"), models.Writes("Archivist", "nobody lets me"), models.Says("I may not.")},
		"Archivist: Clerk says nobody lets me": {models.Writes("Chief", "nobody knows"), models.Says("I have told Chief.")},
		"Chief: archive says nobody knows":     {updates("draft", "in_progress"), writesFile("draft.txt", "somebody <did> it"), models.Writes("Editor", "it was somebody"), updates("task_0002", "completed"), models.Says("The draft is there.")},
		"Editor: desk says it was somebody":    {models.Says("So it was.")},
		"Editor: task check":                   {models.Calls("list_tasks", object{}), updates("check", "completed"), models.Says("The facts are right.")},
		"Writer: task print":                   {updates("print", "completed"), models.Says("It is printed.")},
		"Writer: write for ever":               {models.Holds(never)},
		"Clerk: are you there?":                {models.Says("Yes.")},
		"Writer: can you dance?":               {}, // the model refuses
		"Writer: and now?":                     {models.Says("Now I can.")},
	}
}

// TestATeamWithEverything: a team of three, with a team of two in it, and one of two in
// that, is asked for a paper. Its coordinator fills the board; the others work it off,
// write to each other on every level, and ask people about their tools; it is stopped,
// paused and closed, and told things that are wrong. testdata/team holds the frames of
// its viewers; they and the statuses follow from the logs of the members.
func TestATeamWithEverything(t *testing.T) {
	t.Parallel()
	c := newTeamFleet(t, paperCast(nil).Script())
	p := newTeamScenario(c)
	p.work()
	p.stop()
	p.pause()
	p.mistakes()
	p.failure()
	p.close()
	p.sockets(p.logs())
	p.seeds()
	transcribed(t, filepath.Join("testdata", "team", "everything.txtar"), verify.TeamTranscript(p.sent, p.flat, p.deep))
	p.original.UntilAfter(p.flat.Seq()-1, "the last frame", func(client.TeamFrame) bool { return true })
	transcribed(t, filepath.Join("testdata", "team", "original.txtar"), verify.TeamTranscript(nil, p.original, nil))
}

// teamScenario is a run of the paper and those who watch it.
type teamScenario struct {
	t          *testing.T
	c          *teamFleet
	team       command.TeamView
	flat, deep *client.Team
	original   *client.Team // asks for nothing that the original does not know
	sent       []string
	at         uint64 // position of the last frame that was waited for
}

func newTeamScenario(c *teamFleet) *teamScenario {
	p := &teamScenario{t: c.t, c: c, team: c.found(paper)}
	path := "agent-team/" + p.team.TeamID
	p.flat, p.deep = c.watch(path, false), c.watch(path, true)
	p.original = client.WatchTeam(c.t, client.TeamOptions{Addr: c.addr, Path: path, Original: true, Once: true})
	p.until("IDLE", is("TEAM_STATUS", "", "new_status", "IDLE"))
	return p
}

// until waits for a frame after the last one that was waited for.
func (p *teamScenario) until(what string, ok func(client.TeamFrame) bool) client.TeamFrame {
	p.t.Helper()
	f := p.flat.UntilAfter(p.at, what, ok)
	p.at = f.Sequence
	return f
}

func (p *teamScenario) idle() {
	p.until("the team is idle", is("TEAM_STATUS", "", "new_status", "IDLE"))
}

func (p *teamScenario) say(kind string, payload any) {
	p.t.Helper()
	p.sent = append(p.sent, p.flat.Say(kind, payload))
}

// decide answers the question about a call as clients do, with the question's token.
func (p *teamScenario) decide(kind string, question client.TeamFrame, more object) {
	p.t.Helper()
	payload := object{"invocation_id": question.Text("invocation_id"), "approval_token": question.Member("approval_token")}
	for k, v := range more {
		payload[k] = v
	}
	p.say(kind, payload)
}

func (p *teamScenario) work() {
	p.say("SEND_MESSAGE", object{"content": "make the paper", "context_file_paths": []string{"notes.md"}, "image_urls": []string{"https://example.com/a.png"}})
	checked := p.until("check is done", is("TASK_PLAN_EVENT", "", "event_type", "TASK_STATUS_UPDATED", "task_id", "task_0003", "new_status", "completed"))
	// A next message would reach these members at any moment of their work.
	p.until("Editor is idle", is("AGENT_STATUS", "Editor", "new_status", "idle"))
	p.flat.Until("Writer is idle", is("AGENT_STATUS", "Writer", "new_status", "idle", "trigger", "run.completed"))
	question := p.flat.Until("Clerk's question", is("TOOL_APPROVAL_REQUESTED", clerk))
	p.decide("DENY_TOOL", question, object{"agent_name": "Clerk", "reason": "it is secret"})
	question = p.flat.Until("Chief's question", is("TOOL_APPROVAL_REQUESTED", chief))
	require.Greater(p.t, question.Sequence, checked.Sequence)
	p.decide("APPROVE_TOOL", question, object{"agent_name": "Chief"})
	p.idle()
}

func (p *teamScenario) stop() {
	p.say("SEND_MESSAGE", object{"content": "write for ever", "target_member_name": "Writer"})
	p.until("half a text", is("SEGMENT_CONTENT", "Writer", "delta", "half "))
	p.say("STOP_GENERATION", nil)
	p.idle()
}

func (p *teamScenario) pause() {
	p.say("PAUSE", nil)
	p.until("the innermost team is paused", is("TEAM_STATUS", "desk/archive", "new_status", "PAUSED"))
	p.say("SEND_MESSAGE", object{"content": "are you there?", "target_member_route_key": clerk})
	p.say("RESUME", nil)
	p.until("Clerk is there", is("ASSISTANT_COMPLETE", clerk, "content", "Yes."))
	p.idle()
}

// wrong sends what is refused and waits for the answer.
func (p *teamScenario) wrong(code string, send func()) {
	p.t.Helper()
	before := len(p.flat.Unnumbered())
	send()
	var refusal client.TeamFrame
	process.Eventually(p.t, "it is refused", func() bool {
		for _, f := range p.flat.Unnumbered()[before:] { // an earlier message may be accepted late
			if f.Type == "ERROR" {
				refusal = f
				return true
			}
		}
		return false
	})
	require.Equal(p.t, code, refusal.Text("code"), "%s", refusal.Raw)
}

func (p *teamScenario) raw(text string) func() {
	return func() {
		p.flat.Raw(text)
		p.sent = append(p.sent, text)
	}
}

func (p *teamScenario) mistakes() {
	question := p.flat.Until("Clerk's question", is("TOOL_APPROVAL_REQUESTED", clerk))
	p.wrong("MEMBER_NOT_FOUND", func() { p.say("SEND_MESSAGE", object{"content": "hi", "target_member_name": "Nobody"}) })
	p.wrong("MEMBER_NOT_FOUND", func() {
		p.say("SEND_MESSAGE", object{"content": "hi", "target_member_path": []string{"desk", "Nobody"}})
	})
	p.wrong("INPUT_ANSWERED", func() { p.decide("APPROVE_TOOL", question, nil) })
	p.wrong("INPUT_NOT_FOUND", func() { p.say("APPROVE_TOOL", object{"invocation_id": "none", "agent_name": "Chief"}) })
	p.wrong("BAD_JSON", p.raw("{"))
	p.wrong("INVALID_FIELD", p.raw(`{"payload":{}}`))
	p.wrong("UNKNOWN_MESSAGE_TYPE", p.raw(`{"type":"SING"}`))
	p.wrong("INVALID_FIELD", p.raw(`{"type":"SEND_MESSAGE"}`))
	p.wrong("INVALID_FIELD", p.raw(`{"type":"SEND_MESSAGE","payload":{"content":"hi","image_urls":[1]}}`))
	p.wrong("INVALID_FIELD", p.raw(`{"type":"DENY_TOOL","payload":{"invocation_id":""}}`))
}

func (p *teamScenario) failure() {
	p.say("SEND_MESSAGE", object{"content": "can you dance?", "target_member_name": "Writer"})
	p.until("the team has failed", is("TEAM_STATUS", "", "new_status", "ERROR"))
	p.say("SEND_MESSAGE", object{"content": "and now?", "target_member_name": "Writer"})
	p.idle()
}

func (p *teamScenario) close() {
	p.c.ask(http.MethodDelete, "/api/v1/teams/"+p.team.TeamID, nil, http.StatusOK, nil)
	p.until("the team shuts down", is("TEAM_STATUS", "", "new_status", "SHUTTING_DOWN"))
	for _, route := range []string{"Editor", "Writer", chief, archivist, clerk} {
		p.flat.Until(route+" has ended", is("AGENT_STATUS", route, "new_status", "shutdown_complete"))
	}
}

// logs compares the logs with each other and with what the viewers were sent.
func (p *teamScenario) logs() memberLogs {
	l := p.c.logs(p.team.TeamID)
	require.ElementsMatch(p.t, []string{"", "desk", "desk/archive"}, l.teams)
	require.ElementsMatch(p.t, []string{"Editor", "Writer", chief, archivist, clerk}, l.agents)
	events := l.exact(p.t)
	statuses := l.agentsTruth(p.t)
	compared := l.teamsTruth(p.t)
	for route, want := range statuses {
		require.Equal(p.t, want, shownStatuses(p.flat, "AGENT_STATUS", route), route)
	}
	for _, team := range l.teams {
		want := []string{"STARTING"}
		for _, e := range l.events[team] {
			if e.Type == "team.status" {
				want = append(want, dataOf[event.TeamStatusData](p.t, e.Event).NewStatus)
			}
		}
		require.Equal(p.t, want, shownStatuses(p.flat, "TEAM_STATUS", team), team)
	}
	p.t.Logf("%d events of agents byte for byte; the status of a team compared with its members %d times", events, compared)
	return l
}

// shownStatuses returns the statuses that a viewer was shown.
func shownStatuses(c *client.Team, kind, route string) (all []string) {
	for _, f := range c.Frames() {
		if f.Type == kind && f.Route() == route {
			all = append(all, f.Text("new_status"))
		}
	}
	return all
}
