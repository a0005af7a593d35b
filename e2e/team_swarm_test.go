//go:build nightly

package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/models"
)

// TestAgentsOfTheSwarmInATeam: members of a team, and of a team in it, that are agents of
// the swarm, one by its name and one by what it can do. They are told what members are
// told, their answers and failures are the members', people stop them, and their logs and
// statuses are as exact as those of any member.
func TestAgentsOfTheSwarmInATeam(t *testing.T) {
	c := newTeamFleet(t, models.Team{
		"Boss: paint":                     {models.Writes("Artist", "paint a house"), models.Says("I have asked Artist.")},
		"Boss: Artist says a green house": {models.Calls("create_tasks", object{"tasks": []object{{"task_name": "frame", "assignee_name": "Artist", "description": "Frame it."}}}), models.Says("It is green.")},
		"Boss: sums":                      {models.Writes("numbers", "two and two"), models.Says("I have asked numbers.")},
		"Boss: numbers says four":         {models.Calls("create_tasks", object{"tasks": []object{{"task_name": "sum", "assignee_name": "numbers", "description": "Sum up."}}}), models.Says("It is four.")},
	}.Script())
	h := swarmRig{t: t, addr: c.addr}
	painter := h.agent("painter-1", "Painter", nil, "painting")
	counter := h.agent("counter-1", "Abacus", nil, "counting", "adding")
	v := c.found(object{
		"name": "office", "coordinator": "Boss",
		"members": []object{
			{"name": "Boss"},
			{"name": "Artist", "agent": "Painter", "instructions": "Use green."},
			{"name": "numbers", "team": object{
				"name": "numbers", "coordinator": "Counter", "members": []object{{"name": "Counter", "capabilities": []string{"counting", "adding"}}},
			}},
		},
	})
	teamClient := c.watch("agent-team/"+v.TeamID, false)
	idle := func(after client.TeamFrame) {
		t.Helper()
		teamClient.UntilAfter(after.Sequence, "the team is idle", is("TEAM_STATUS", "", "new_status", "IDLE"))
	}

	teamClient.Say("SEND_MESSAGE", object{"content": "paint"})
	task := painter.Until("task.execute")
	var told struct {
		Content      string `json:"content"`
		Instructions string `json:"instructions"`
		Sender       struct {
			Name string `json:"name"`
		} `json:"sender"`
	}
	require.NoError(t, decodeMember(task, "data", &told), "%s", task.Content)
	require.Equal(t, []string{"paint a house", "Use green.", "Boss"}, []string{told.Content, told.Instructions, told.Sender.Name})
	teamClient.Until("what Boss wrote", is("INTER_AGENT_MESSAGE", "Artist", "content", "paint a house"))
	painter.Say("agent.task.result", object{"taskId": task.Text("taskId"), "result": object{"text": "a green house"}})
	teamClient.Until("the answer", is("ASSISTANT_COMPLETE", "Artist", "content", "a green house"))
	teamClient.Until("the answer comes to who asked", is("INTER_AGENT_MESSAGE", "Boss", "content", "a green house", "message_type", "answer"))
	task = painter.Until("task.execute")
	require.Contains(t, string(task.Member("data")), "Frame it.")
	painter.Say("agent.task.result", object{"taskId": task.Text("taskId"), "result": "framed"})
	idle(teamClient.Until("the board knows", is("TASK_PLAN_EVENT", "", "event_type", "TASK_STATUS_UPDATED", "new_status", "completed", "agent_name", "Artist")))

	teamClient.Say("SEND_MESSAGE", object{"content": "count", "target_member_name": "numbers"})
	task = counter.Until("task.execute")
	counter.Say("agent.task.result", object{"taskId": task.Text("taskId"), "result": "seven"})
	idle(teamClient.Until("the answer", is("ASSISTANT_COMPLETE", "numbers/Counter", "content", "seven")))

	teamClient.Say("SEND_MESSAGE", object{"content": "sums"})
	task = counter.Until("task.execute")
	require.Contains(t, string(task.Member("data")), "two and two")
	counter.Say("agent.task.result", object{"taskId": task.Text("taskId"), "result": "four"})
	teamClient.Until("the answer comes out of the nested team", is("INTER_AGENT_MESSAGE", "Boss", "content", "four", "message_type", "answer", "sender_agent_name", "numbers"))
	task = counter.Until("task.execute")
	require.Contains(t, string(task.Member("data")), "Sum up.")
	counter.Say("agent.task.result", object{"taskId": task.Text("taskId"), "result": "summed"})
	idle(teamClient.Until("the board knows", is("TASK_PLAN_EVENT", "", "event_type", "TASK_STATUS_UPDATED", "new_status", "completed", "agent_name", "numbers")))

	teamClient.Say("SEND_MESSAGE", object{"content": "count for ever", "target_member_route_key": "numbers/Counter"})
	task = counter.Until("task.execute")
	teamClient.Say("STOP_GENERATION", object{"target_member_route_key": "numbers/Counter"})
	require.Equal(t, task.Text("taskId"), counter.Until("task.cancel").Text("taskId"))
	stopped := teamClient.UntilAfter(teamClient.Until("seven", is("ASSISTANT_COMPLETE", "numbers/Counter", "content", "seven")).Sequence+64, "it has stopped",
		is("AGENT_STATUS", "numbers/Counter", "new_status", "idle", "trigger", "run.cancelled"))
	idle(stopped)

	teamClient.Say("SEND_MESSAGE", object{"content": "paint the sea", "target_member_name": "Artist"})
	task = painter.Until("task.execute")
	painter.Say("task.error", object{"taskId": task.Text("taskId"), "error": "there is no blue"})
	failure := teamClient.Until("the failure", func(f client.TeamFrame) bool { return f.Type == "ERROR" && f.Route() == "Artist" })
	require.Contains(t, failure.Text("message"), "there is no blue")
	teamClient.UntilAfter(failure.Sequence, "the team has failed", is("TEAM_STATUS", "", "new_status", "ERROR"))

	l := c.logs(v.TeamID)
	require.ElementsMatch(t, []string{"Boss", "Artist", "numbers/Counter"}, l.agents)
	l.exact(t)
	l.agentsTruth(t)
	l.teamsTruth(t)
}
