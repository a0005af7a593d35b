package process

import (
	"cmp"
	"context"

	"github.com/waggle-dev/waggle/services/tools/remote"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/gateway/asp"
	"github.com/waggle-dev/waggle/gateway/asp/participants"
	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/services/assignment"
	"github.com/waggle-dev/waggle/services/task"
)

func (p *process) task(ctx context.Context) (lifecycle.Component, error) {
	daily, err := p.ofDay(ctx)
	if err != nil {
		return nil, err
	}
	c := p.Config.Task
	return task.New(task.Config{
		Rules: assignment.Rules{
			QueueTimeout: c.QueueTimeout, TaskTimeout: c.Timeout, AskTimeout: c.AskTimeout, Lease: c.Lease, Pause: c.Pause,
			Tries: c.Tries, MaxDepth: c.MaxDepth, Access: p.Config.Access.Policy(),
		},
		Keep: c.Keep, Calls: c.Calls, Registry: p.registry, Quota: p.quotas(), Daily: daily, Now: p.clock.Now,
	}, p.manages("task"), remote.NewClient(p.conn))
}

// Paths at which the participants of a swarm connect.
const (
	pathClient  = "/ws/asp/client"
	pathAgent   = "/ws/asp/agent"
	pathService = "/ws/asp/service"
	pathChat    = "/ws"
	pathSession = "/ws/session"
)

// swarmRoutes returns the swarm protocol, which tells its participants the limits of this configuration.
func (p *process) swarmRoutes() map[string]gateway.Route {
	c := p.Config
	s := asp.Settings{
		ServerVersion: p.Version, Heartbeat: cmp.Or(c.Gateway.Participants.Ping, participants.DefaultPing),
		QueueTimeout: c.Task.QueueTimeout, TaskTimeout: c.Task.Timeout,
		MaxConcurrentTasks: cmp.Or(c.Gateway.Participants.Calls, participants.DefaultCalls), Statuses: command.Vocabulary(c.Gateway.ASPStatuses),
		RawMessages: c.Gateway.ASPMessages == config.ASPMessagesObject,
	}
	return map[string]gateway.Route{pathClient: gateway.Swarm(asp.Client(s)), pathAgent: gateway.Swarm(asp.Agent(s)), pathService: gateway.Swarm(asp.Service(s))}
}

// legacy returns the additional listeners, each with its protocol.
func legacy(l config.Legacy) (out []gateway.Listener) {
	for _, v := range []struct {
		addr  string
		paths []string
	}{
		{l.Client, []string{pathClient}},
		{l.Agent, []string{pathAgent}},
		{l.Service, []string{pathService}},
		{l.MyAgent, []string{pathSession}},
		{l.ORBIT, []string{pathChat}},
		{l.Team, []string{pathTeam, pathMember}},
	} {
		if v.addr != "" && v.addr != config.LegacyOff {
			out = append(out, gateway.Listener{Addr: v.addr, Paths: v.paths})
		}
	}
	return out
}
