package teamwork_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/teamwork"
)

// TestWhatAgentsOfTheSwarmDoIsReported: agents of the swarm lack the team's tools, so the team
// reports their results to the asking member and updates the board for them. It reports neither to
// users, who see the run, nor to the one that stopped it.
func TestWhatAgentsOfTheSwarmDoIsReported(t *testing.T) {
	w := started(t, event.TeamDefinition{Name: "yard", Coordinator: "Lead", Members: []event.MemberDefinition{
		{Name: "Lead"}, {Name: "Welder", Agent: "Weld-o-mat"},
	}})
	ask := func(call string) (run string) {
		acted(t, w.do(command.ActTeam, "a-"+call, "", act("Lead", call, command.ToolSendMessage, map[string]any{"recipient_name": "Welder", "content": "weld"})))
		return w.given("Welder")
	}

	run := ask("c1")
	w.run("Welder", run, event.RunCompletedData{RunID: run, Content: "It holds."})
	require.Equal(t, []string{"It holds."}, w.letters("Lead"))
	require.Equal(t, event.TeamRunning, w.state.View().Status, "it has not been idle in between")
	require.Equal(t, event.TeamMessage, w.events[len(w.events)-1].Type)
	last, err := event.As[event.TeamMessageData](w.events[len(w.events)-1])
	require.NoError(t, err)
	require.Equal(t, []string{"Welder", "Welder", "answer", event.SenderAgent}, []string{last.Sender.Name, last.Sender.Route, last.Sender.MessageType, last.Sender.Kind})

	run = ask("c2")
	w.run("Welder", run, event.RunFailedData{RunID: run, Message: "no gas"})
	require.Contains(t, w.letters("Lead"), "I could not do it: no gas")
	run = ask("c3")
	w.run("Welder", run, event.RunCancelledData{RunID: run})
	w.do(command.SendMessage, "m1", "Welder", command.UserMessage{Content: "weld for me"})
	run = w.given("Welder")
	w.run("Welder", run, event.RunCompletedData{RunID: run, Content: "For you."})
	require.Len(t, w.letters("Lead"), 2, "who stopped it knows, and users see it")

	acted(t, w.do(command.ActTeam, "a4", "", act("Lead", "c4", command.ToolCreateTasks, map[string]any{"tasks": []any{
		map[string]any{"task_name": "one", "assignee_name": "Welder"},
		map[string]any{"task_name": "two", "assignee_name": "Welder", "dependencies": []string{"one"}},
	}})))
	run = w.given("Welder")
	w.run("Welder", run, event.RunCompletedData{RunID: run, Content: "Done."})
	require.Equal(t, []string{event.BoardCompleted, event.BoardQueued}, w.board())
	run = w.given("Welder")
	w.run("Welder", run, event.RunFailedData{RunID: run, Message: "no gas"})
	require.Equal(t, []string{event.BoardCompleted, event.BoardFailed}, w.board())
	require.Len(t, w.letters("Lead"), 2)

	again := &teamwork.State{}
	for _, e := range w.events {
		require.NoError(t, again.Apply(e))
	}
	require.Equal(t, w.state.View(), again.View())
	require.Empty(t, again.Advance())
}

// TestWhatANestedTeamOfTheSwarmDoesIsReported: of a nested team whose coordinator is an
// agent of the swarm, or of such an agent that is written to in there, the outcome reaches
// the colleague who asked, and the board, as that of a nested team of models would.
func TestWhatANestedTeamOfTheSwarmDoesIsReported(t *testing.T) {
	gang := event.TeamDefinition{Name: "gang", Coordinator: "Chief", Members: []event.MemberDefinition{
		{Name: "Chief"}, {Name: "Painter", Capabilities: []string{"painting"}},
	}}
	shop := event.TeamDefinition{Name: "shop", Coordinator: "Welder", Members: []event.MemberDefinition{
		{Name: "Welder", Agent: "Weld-o-mat"}, {Name: "gang", Team: &gang},
	}}
	w := started(t, event.TeamDefinition{Name: "yard", Coordinator: "Lead", Members: []event.MemberDefinition{{Name: "Lead"}, {Name: "shop", Team: &shop}}})
	write := func(call, to string) {
		acted(t, w.do(command.ActTeam, "a-"+call, "", act("Lead", call, command.ToolSendMessage, map[string]any{"recipient_name": to, "content": "do"})))
	}

	write("c1", "shop")
	n := w.nest("shop")
	run := n.given("Welder")
	w.hear("shop", n)
	require.Empty(t, w.letters("Lead"))
	n.run("Welder", run, event.RunCompletedData{RunID: run, Content: "It holds."})
	w.hear("shop", n)
	require.Equal(t, []string{"It holds."}, w.letters("Lead"))
	require.Empty(t, n.letters("Lead"), "the team of whoever asked says it, and nobody else")
	last, err := event.As[event.TeamMessageData](w.events[len(w.events)-1])
	require.NoError(t, err)
	require.Equal(t, []string{"shop", "shop", "answer", event.SenderAgent}, []string{last.Sender.Name, last.Sender.Route, last.Sender.MessageType, last.Sender.Kind})

	write("c2", "shop/gang/Painter")
	n.receive(w)
	g := n.nest("gang")
	run = g.given("Painter")
	g.run("Painter", run, event.RunFailedData{RunID: run, Message: "no paint"})
	n.hear("gang", g)
	w.hear("shop", n)
	require.Equal(t, []string{"It holds.", "I could not do it: no paint"}, w.letters("Lead"))

	acted(t, w.do(command.ActTeam, "a3", "", act("Lead", "c3", command.ToolCreateTasks, map[string]any{"tasks": []any{map[string]any{"task_name": "one", "assignee_name": "shop"}}})))
	n.receive(w)
	run = n.given("Welder")
	n.run("Welder", run, event.RunCompletedData{RunID: run, Content: "Done."})
	w.hear("shop", n)
	require.Equal(t, []string{event.BoardCompleted}, w.board())

	w.do(command.SendMessage, "m1", "shop", command.UserMessage{Content: "for me"})
	n.receive(w)
	run = n.given("Welder")
	n.run("Welder", run, event.RunCompletedData{RunID: run, Content: "For you."})
	w.hear("shop", n)
	require.Len(t, w.letters("Lead"), 2, "users see it")
}

// nest is the log of a nested team that has just been given what waits for it.
func (w *world) nest(name string) *world {
	w.t.Helper()
	def, parent, err := w.state.Nested(name)
	require.NoError(w.t, err)
	n := newWorldAt(w.t, w.source(name).ID, def, &parent)
	n.serve()
	n.relay(def.Coordinator)
	n.node = name
	n.receive(w)
	return n
}

// receive hands on what waits for a nested team.
func (w *world) receive(from *world) {
	w.t.Helper()
	for _, m := range from.state.Pending() {
		if m.Member == w.node {
			w.do(command.SendMessage, m.MessageID, m.Route, command.UserMessage{Content: m.Content, Sender: m.Sender})
		}
	}
}

// hear shows a team all that a nested one has logged.
func (w *world) hear(name string, n *world) {
	w.t.Helper()
	for _, e := range n.events[len(w.members[name]):] {
		raw, err := json.Marshal(e)
		require.NoError(w.t, err)
		w.members[name] = append(w.members[name], teamwork.Incoming{Event: e, Raw: raw})
	}
	w.relay(name)
}

// given hands on what waits and returns the run that the member's newest message is.
func (w *world) given(name string) string {
	w.t.Helper()
	w.serve() // its log
	w.serve() // its messages
	w.relay(name)
	var run string
	for _, e := range w.members[name] {
		if d, err := event.As[event.MessageReceivedData](e.Event); err == nil && e.Type == event.MessageReceived {
			run = d.RunID
		}
	}
	return run
}

// letters are what was written to a member.
func (w *world) letters(name string) (out []string) {
	for _, e := range w.events {
		if d, err := event.As[event.TeamMessageData](e); err == nil && e.Type == event.TeamMessage && d.Member == name {
			out = append(out, d.Content)
		}
	}
	return out
}

// board is how its tasks are.
func (w *world) board() (out []string) {
	for _, t := range w.state.View().Board {
		out = append(out, t.Status)
	}
	return out
}
