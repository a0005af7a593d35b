package task_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/rpc"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/task"
)

func (r *rig) open(in cmd.OpenClientRequest) (out cmd.OpenClientReply, err error) {
	in.Tenant = tenant
	return out, rpc.Call(r.Ctx, r.Conn, cmd.Task, cmd.OpenClient, in, &out)
}

// TestAnInboxIsOpenedByItsToken: a client comes back with its token to where it was;
// everybody else is told the same as about a client that never was.
func TestAnInboxIsOpenedByItsToken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", task.Config{})
	me := r.client()
	require.False(t, me.Resumed)
	require.Regexp(t, `^1\.`, me.After, "what opens the inbox is no news")
	for _, wrong := range []cmd.OpenClientRequest{
		{ClientID: me.ClientID, Token: "x", Principal: "p"},
		{ClientID: me.ClientID, Principal: "p"},
		{ClientID: me.ClientID, Token: me.Token, Principal: "q"},
		{ClientID: "client_never", Token: me.Token, Principal: "p"},
	} {
		_, err := r.open(wrong)
		isFault(t, err, fault.ClientNotFound)
	}
	raw, err := json.Marshal(r.All(logOf(id.KindInbox, me.ClientID)))
	require.NoError(t, err)
	require.NotContains(t, string(raw), me.Token)

	require.NoError(t, r.ask(cmd.NameClient, me.ClientID, event.InboxRegisteredData{Name: "Me"}, nil))
	isFault(t, r.ask(cmd.NameClient, "client_never", event.InboxRegisteredData{Name: "Me"}, nil), fault.ClientNotFound)
	back := cmd.OpenClientRequest{ClientID: me.ClientID, Token: me.Token, Principal: "p"}
	got, err := r.open(back)
	require.NoError(t, err)
	require.Equal(t, cmd.OpenClientReply{ClientID: me.ClientID, Token: me.Token, After: "0", Resumed: true}, got, "nothing was noted")

	require.NoError(t, r.Send.Send(r.Ctx, cmd.Command{
		ID: "ack", Service: cmd.Task, Verb: cmd.AckClient, Tenant: tenant, Key: id.EntityFromExternal(me.ClientID),
		Data: servicetest.JSON(t, cmd.AckEvents{ClientID: me.ClientID, Seq: 1}),
	}))
	require.Eventually(t, func() bool {
		got, err = r.open(back)
		return err == nil && got.After == "1"
	}, maxWait, 5*time.Millisecond)
	two, three := uint64(2), uint64(3)
	back.After = &two
	got, err = r.open(back)
	require.NoError(t, err)
	require.Regexp(t, `^2\.`, got.After)
	back.After = &three
	_, err = r.open(back)
	isFault(t, err, fault.CursorInvalid)
}

// TestClientsTellEachOther: a message waits for a client that is away, once, and not
// longer than it may.
func TestClientsTellEachOther(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", task.Config{})
	a, b := r.client(), r.client()
	note := cmd.ClientNote{TargetID: b.ClientID, MessageType: "hello", Data: json.RawMessage(`{"x":1}`)}
	require.NoError(t, r.ask(cmd.SendClient, a.ClientID, note, nil))
	got := r.Until(logOf(id.KindInbox, b.ClientID), event.InboxMessaged, 1)
	m, err := event.As[event.InboxMessagedData](got[1])
	require.NoError(t, err)
	require.Equal(t, a.ClientID, m.SenderID)
	require.Equal(t, "name of "+a.ClientID, m.SenderName)
	require.WithinDuration(t, time.Now().Add(task.DefaultKeep), m.ExpiresAt, time.Hour)
	isFault(t, r.ask(cmd.SendClient, a.ClientID, cmd.ClientNote{TargetID: "client_never"}, nil), fault.ClientNotFound)
	isFault(t, r.ask(cmd.SendClient, a.ClientID, cmd.ClientNote{}, nil), fault.ClientNotFound)
	other, err := id.ParseTenant("other")
	require.NoError(t, err)
	isFault(t, r.askIn(other, cmd.SendClient, "x", note, nil), fault.ClientNotFound)

	tell := func(commandID string, expires time.Time) {
		r.command(b.ClientID, cmd.TellClient, commandID, event.InboxMessagedData{MessageID: commandID, TargetID: b.ClientID, ExpiresAt: expires}, "")
	}
	tell("late", time.Now().Add(-time.Second))
	tell("good", time.Now().Add(time.Hour))
	got = r.Until(logOf(id.KindInbox, b.ClientID), event.InboxMessaged, 2)
	require.Equal(t, "good.message", got[2].ID)
}

func TestListsOfParticipants(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", task.Config{})
	other, err := id.ParseTenant("other")
	require.NoError(t, err)
	r.join(cmd.Participant{ID: "a1", Name: "Welder", Capabilities: []string{"weld", "cut"}, Principal: "secret"})
	r.join(cmd.Participant{ID: "a2", Name: "Cutter", Capabilities: []string{"cut"}, Status: cmd.StatusBusy})
	r.join(cmd.Participant{ID: "a3", Name: "Welder of another", Capabilities: []string{"weld"}, Tenant: other})
	r.join(cmd.Participant{ID: "a5", Name: "Zinc bath", Status: cmd.StatusMaintenance})
	gone := r.join(cmd.Participant{ID: "a4", Name: "Former welder", Capabilities: []string{"weld"}})
	r.join(cmd.Participant{ID: "s1", Name: "Shop", Kind: cmd.ParticipantService, Extra: json.RawMessage(`{"type":"commerce"}`)})
	r.join(cmd.Participant{ID: "c1", Name: "Browser", Kind: cmd.ParticipantClient})
	r.departs(gone)
	list := func(verb id.Name, f cmd.ParticipantFilter) string {
		var out cmd.ParticipantList
		require.NoError(t, r.ask(verb, "c1", f, &out))
		ids := ""
		for _, p := range out.Participants {
			require.Empty(t, p.Principal+p.Gateway+p.Connection)
			ids += " " + p.ID
		}
		return ids
	}
	for _, c := range []struct {
		verb id.Name
		f    cmd.ParticipantFilter
		want string
	}{
		{cmd.ListAgents, cmd.ParticipantFilter{}, " a2 a4 a1 a5"},
		{cmd.ListAgents, cmd.ParticipantFilter{Status: "active"}, " a1"},
		{cmd.ListAgents, cmd.ParticipantFilter{Status: "offline"}, " a4 a5"},
		{cmd.ListAgents, cmd.ParticipantFilter{Status: "inactive"}, " a4"},
		{cmd.ListAgents, cmd.ParticipantFilter{Status: "online"}, " a1"},
		{cmd.ListAgents, cmd.ParticipantFilter{Status: "Maintenance"}, " a5"},
		{cmd.ListAgents, cmd.ParticipantFilter{Status: "asleep"}, ""},
		{cmd.ListAgents, cmd.ParticipantFilter{Status: "busy"}, " a2"},
		{cmd.ListAgents, cmd.ParticipantFilter{Capabilities: []string{"cut", "weld"}}, " a1"},
		{cmd.ListAgents, cmd.ParticipantFilter{Name: "WELD"}, " a4 a1"},
		{cmd.ListServices, cmd.ParticipantFilter{}, " s1"},
		{cmd.ListServices, cmd.ParticipantFilter{Type: "commerce"}, " s1"},
		{cmd.ListServices, cmd.ParticipantFilter{Type: "other"}, ""},
		{cmd.ListClients, cmd.ParticipantFilter{}, " c1"},
		{cmd.ListServers, cmd.ParticipantFilter{}, " files web"},
		{cmd.ListServers, cmd.ParticipantFilter{Type: "http"}, " web"},
		{cmd.ListServers, cmd.ParticipantFilter{Status: "active"}, " files"},
		{cmd.ListServers, cmd.ParticipantFilter{Status: "online"}, " files"},
		{cmd.ListServers, cmd.ParticipantFilter{Capabilities: []string{"read"}}, " files"},
	} {
		require.Equal(t, c.want, list(c.verb, c.f), "%s %+v", c.verb, c.f)
	}
}

// TestAnotherTenantSeesNothing: whatever it asks by the ids of this one has the answer
// of ids that do not exist.
func TestAnotherTenantSeesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", task.Config{})
	other, err := id.ParseTenant("other")
	require.NoError(t, err)
	a := r.join(cmd.Participant{ID: "w1", Name: "W", Capabilities: []string{"weld"}})
	taskID := r.submit("", cmd.NewTask{AgentName: "W"})
	hears[event.TaskAssignedData](a)
	answer := func(verb id.Name, data any) string {
		var out json.RawMessage
		err := r.askIn(other, verb, "spy", data, &out)
		return fmt.Sprint(err, " ", string(out))
	}
	for _, c := range []struct {
		verb           id.Name
		theirs, absent any
	}{
		{cmd.ShowTask, cmd.TaskRefData{TaskID: taskID}, cmd.TaskRefData{TaskID: "none"}},
		{cmd.ShowTask, cmd.TaskRefData{TaskID: taskID}, cmd.TaskRefData{}},
		{cmd.Submit, cmd.NewTask{AgentID: "w1"}, cmd.NewTask{AgentID: "none"}},
		{cmd.Submit, cmd.NewTask{AgentName: "W"}, cmd.NewTask{AgentName: "none"}},
		{cmd.Submit, cmd.NewTask{Capabilities: []string{"weld"}}, cmd.NewTask{Capabilities: []string{"none"}}},
		{cmd.ListAgents, cmd.ParticipantFilter{Name: "W"}, cmd.ParticipantFilter{Name: "none"}},
		{cmd.ListTools, cmd.ToolsOf{Kind: "service", Server: "shop"}, cmd.ToolsOf{Kind: "service", Server: "none"}},
	} {
		require.Equal(t, answer(c.verb, c.absent), answer(c.verb, c.theirs), "%s %+v", c.verb, c.theirs)
	}
}
