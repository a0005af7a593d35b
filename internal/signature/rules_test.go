package signature_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// TestServicesSpeakForNoPerson: which unsigned commands are accepted, and that none of them may name a person.
func TestServicesSpeakForNoPerson(t *testing.T) {
	_, v := keys(t)
	team := id.EntityFromExternal("t1")
	nested, err := id.MemberTeam(team, "lib")
	require.NoError(t, err)
	for _, x := range []struct {
		service, verb id.Name
		key           string
		own           bool
	}{
		{command.Session, command.Open, "s1", false},
		{command.Session, command.Open, "task-t1", true},
		{command.Session, command.Close, "s1", false},
		{command.Session, command.Delete, "s1", false},
		{command.Session, command.Delete, "task-t1", true},
		{command.Session, command.Ack, "task-t1", false},
		{command.Session, command.Import, "task-t1", false},
		{command.Pipeline, command.SendMessage, "s1", false},
		{command.Pipeline, command.SendMessage, "task-t1", true},
		{command.Pipeline, command.Cancel, "s1", false},
		{command.Pipeline, command.Answer, "task-t1", false},
		{command.Pipeline, command.CancelStep, "task-t1", false},
		{command.Pipeline, command.RestartStep, "task-t1", false},
		{command.Pipeline, command.CancelPlan, "task-t1", false},
		{command.Pipeline, command.Replan, "task-t1", false},
		{command.Member, command.SendMessage, nested.String(), true},
		{command.Member, command.Answer, nested.String(), false},
		{command.Team, command.SendMessage, "t1", false},
		{command.Team, command.SendMessage, nested.String(), true},
		{command.Team, command.CloseTeam, "t1", false},
		{command.Team, command.PauseTeam, "t1", false},
		{command.Team, command.ResumeTeam, "t1", false},
		{command.Team, command.CloseTeam, nested.String(), true},
		{command.Team, command.Answer, nested.String(), false},
		{command.Task, command.MessageTask, "k1", false},
		{command.Task, command.SpawnTask, "k1", false},
		{command.Task, command.CallTool, "k1", false},
		{command.Task, command.CancelTask, "k1", true},
		{command.Task, command.FinishTask, "k1", true},
	} {
		c := command.Command{ID: "c1", Service: x.service, Verb: x.verb, Tenant: id.DefaultTenant, Key: id.EntityFromExternal(x.key), Time: now}
		own, err := v.Check(c, now, now)
		require.Equal(t, x.own, own, "%s.%s %s", x.service, x.verb, x.key)
		require.Equal(t, x.own, err == nil, "%s.%s %s", x.service, x.verb, x.key)
		c.Principal = "alice"
		_, err = v.Check(c, now, now)
		require.Error(t, err, "%s.%s %s", x.service, x.verb, x.key)
	}
}

// TestServicesHandCommandsOfPeopleOn: a derived command carries the signed one that it follows from, and no other passes.
func TestServicesHandCommandsOfPeopleOn(t *testing.T) {
	s, v := keys(t)
	team := id.EntityFromExternal("t1")
	member, err := id.MemberAgent(team, "Reader")
	require.NoError(t, err)
	stranger, err := id.MemberAgent(id.EntityFromExternal("t2"), "Reader")
	require.NoError(t, err)
	origin := func(verb id.Name) *event.Proof {
		c := message()
		c.Service, c.Verb, c.Key = command.Team, verb, team
		return signed(t, s, c).Proof()
	}
	derived := func(change func(*command.Command)) command.Command {
		c := command.Command{
			ID: "m1", Service: command.Member, Verb: command.Answer, Tenant: id.DefaultTenant, Key: member, Principal: "alice",
			Origin: origin(command.Answer),
		}
		change(&c)
		return c
	}
	_, err = v.Check(derived(func(*command.Command) {}), now, now)
	require.NoError(t, err)
	for name, change := range map[string]func(*command.Command){
		"another principal": func(c *command.Command) { c.Principal = "bob" },
		"an operator":       func(c *command.Command) { c.Operator = true },
		"no principal":      func(c *command.Command) { c.Principal = "" },
		"another team":      func(c *command.Command) { c.Key = stranger },
		"another verb":      func(c *command.Command) { c.Origin = origin(command.SendMessage) },
		"another service":   func(c *command.Command) { c.Service, c.Key = command.Pipeline, id.EntityFromExternal("s1") },
		"a changed origin":  func(c *command.Command) { c.Origin.CommandID = "m2" },
		"no origin":         func(c *command.Command) { c.Origin = nil },
	} {
		_, err := v.Check(derived(change), now, now)
		require.Error(t, err, name)
	}
}

// TestAnswersAreHandedOnToAgents: the answer to an agent of the swarm goes to its task with the signed one.
func TestAnswersAreHandedOnToAgents(t *testing.T) {
	s, v := keys(t)
	for _, service := range []id.Name{command.Pipeline, command.Team} {
		origin := func(verb id.Name) *event.Proof {
			c := message()
			c.Service, c.Verb = service, verb
			return signed(t, s, c).Proof()
		}
		handed := func(change func(*command.Command)) error {
			c := command.Command{
				ID: "m1", Service: command.Task, Verb: command.MessageTask, Tenant: id.DefaultTenant, Key: id.EntityFromExternal("work_1"), Principal: "alice",
				Origin: origin(command.Answer),
			}
			change(&c)
			own, err := v.Check(c, now, now)
			require.False(t, own)
			return err
		}
		require.NoError(t, handed(func(*command.Command) {}))
		for name, change := range map[string]func(*command.Command){
			"another verb":      func(c *command.Command) { c.Verb = command.SpawnTask },
			"another principal": func(c *command.Command) { c.Principal = "bob" },
			"another origin":    func(c *command.Command) { c.Origin = origin(command.SendMessage) },
			"a changed origin":  func(c *command.Command) { c.Origin.Data = []byte(`{"approved":true}`) },
			"no origin":         func(c *command.Command) { c.Origin = nil },
			"another tenant":    func(c *command.Command) { c.Tenant, _ = id.ParseTenant("other") },
			"an operator":       func(c *command.Command) { c.Operator = true },
		} {
			require.Error(t, handed(change), name)
		}
	}
}
