package team_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/rpc"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/team"
)

// maxWait bounds every wait.
const maxWait = 90 * time.Second

var (
	tenant  = id.DefaultTenant
	gateway = id.MustName("gw")
)

func TestMain(m *testing.M) {
	bustest.Waiting()
	goleak.VerifyTestMain(m, bustest.Leftovers()...)
}

// rig is a NATS server with replicas of the service. The test plays the members.
type rig struct {
	*servicetest.Rig
	cast *cast
}

func newRig(t testing.TB) *rig { return rigOn(t, bustest.Single(t)) }

func rigOn(t testing.TB, conn *bus.Conn) *rig {
	t.Helper()
	r := &rig{Rig: servicetest.New(t, conn, maxWait)}
	r.cast = newCast(r)
	return r
}

// start starts a replica of the service, with an event log store of its own.
func (r *rig) start(name string, cfg team.Config) *team.Service {
	r.T.Helper()
	deps := r.Deps(name)
	deps.Log = r.Store()
	s, err := team.New(cfg, deps)
	r.Run(s, err)
	return s
}

// found founds a team.
func (r *rig) found(d event.TeamDefinition) subject.Log {
	r.T.Helper()
	var v cmd.TeamView
	require.NoError(r.T, rpc.Call(r.Ctx, r.Conn, cmd.Team, cmd.FoundTeam, cmd.TeamRequest{Tenant: tenant, Principal: "alice", Definition: &d}, &v))
	require.Equal(r.T, d.Name, v.Name)
	return teamLog(id.EntityFromExternal(v.TeamID))
}

func teamLog(e id.Entity) subject.Log {
	return subject.Log{Tenant: tenant, Kind: id.KindTeam, Entity: e}
}

func agentLog(e id.Entity) subject.Log {
	return subject.Log{Tenant: tenant, Kind: id.KindMember, Entity: e}
}

// agentOf returns the log of the member at the end of the path.
func agentOf(t testing.TB, team subject.Log, path ...string) subject.Log {
	t.Helper()
	for len(path) > 1 {
		team = nestedOf(t, team, path[0])
		path = path[1:]
	}
	e, err := id.MemberAgent(team.Entity, path[0])
	require.NoError(t, err)
	return agentLog(e)
}

func nestedOf(t testing.TB, team subject.Log, path ...string) subject.Log {
	t.Helper()
	for _, name := range path {
		e, err := id.MemberTeam(team.Entity, name)
		require.NoError(t, err)
		team = teamLog(e)
	}
	return team
}

// command sends a command to a team.
func (r *rig) command(team subject.Log, verb id.Name, commandID, member string, data any, connection string) {
	r.T.Helper()
	c := cmd.Command{
		ID: commandID, Service: cmd.Team, Verb: verb, Tenant: team.Tenant, Key: team.Entity, Principal: "alice", Member: member,
	}
	if connection != "" {
		c.ReplyTo = subject.ReplyTo(gateway, id.MustName(connection))
	}
	r.Command(c, data)
}

func (r *rig) message(team subject.Log, commandID, member, content string) {
	r.T.Helper()
	r.command(team, cmd.SendMessage, commandID, member, cmd.UserMessage{Content: content}, "")
}

// directTo returns the direct messages to a connection.
func (r *rig) directTo(connection string) <-chan event.Event {
	r.T.Helper()
	out := make(chan event.Event, 256)
	sub, err := r.Conn.NATS().Subscribe(subject.Direct(gateway, id.MustName(connection)), func(m *nats.Msg) {
		var e event.Event
		if json.Unmarshal(m.Data, &e) == nil {
			out <- e
		}
	})
	require.NoError(r.T, err)
	require.NoError(r.T, r.Conn.NATS().FlushWithContext(r.Ctx))
	r.T.Cleanup(func() { require.NoError(r.T, sub.Unsubscribe()) })
	return out
}

// hears waits for the next direct message, which has to be of the type.
func hears[T event.Data](t testing.TB, direct <-chan event.Event) T {
	t.Helper()
	select {
	case e := <-direct:
		var want T
		require.Equal(t, want.EventType(), e.Type, "%s", e.Data)
		d, err := event.As[T](e)
		require.NoError(t, err)
		return d
	case <-time.After(maxWait):
		require.Fail(t, "no direct message has come")
		panic("unreachable")
	}
}

// untilInner waits for the n-th event of a type in or below a team.
func (r *rig) untilInner(l subject.Log, typ event.Type, n int) []*eventlog.Entry {
	r.T.Helper()
	left, seen := n, 0
	return r.Wait(l, fmt.Sprintf("%s %d times", typ, n), func(all []*eventlog.Entry) bool {
		for ; seen < len(all); seen++ {
			if event.Unwrap(all[seen].Event).Type == typ {
				left--
			}
		}
		return left <= 0
	})
}

func isFault(t testing.TB, err error, code fault.Code) {
	t.Helper()
	require.ErrorIs(t, err, fault.New(code))
}

func agent(name string) event.MemberDefinition { return event.MemberDefinition{Name: name} }

// teamOf returns a team of agents of which the first coordinates.
func teamOf(name string, members ...event.MemberDefinition) event.TeamDefinition {
	return event.TeamDefinition{Name: name, Coordinator: members[0].Name, Members: members}
}

func node(name string, d event.TeamDefinition) event.MemberDefinition {
	return event.MemberDefinition{Name: name, Team: &d}
}

// deep is a team with another in it, with another in it.
func deep() event.TeamDefinition {
	inner := teamOf("innermost", agent("Chief"), agent("Digger"))
	middle := teamOf("middle", agent("Coder"), agent("Tester"), node("deep", inner))
	return teamOf("outer", agent("Lead"), agent("Writer"), node("backend", middle))
}

// owner returns the replica whose the team is.
func (r *rig) owner(l subject.Log) string {
	members := r.Dir.Members(directory.WhatService, cmd.Team)
	i := slices.IndexFunc(members, func(m directory.Member) bool {
		return command.Owns(subject.DefaultPartitions, m.Instance, members, subject.Command{Service: cmd.Team, Tenant: l.Tenant, Key: l.Entity})
	})
	require.GreaterOrEqual(r.T, i, 0)
	return members[i].Instance.String()
}
