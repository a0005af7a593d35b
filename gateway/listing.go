package gateway

import (
	"time"

	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/internal/directory"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// listing is what operators see of a connection.
type listing struct {
	client *edge.Client // nil: a gateway of another cell has it
	since  time.Time
	queued int // bytes that wait to be written
}

// listed returns the connections of clients of the tenant that have authenticated.
func (l *connections) listed(gateway string, tenant id.Tenant) []wire.Connection {
	out := []wire.Connection{}
	for _, c := range l.open() {
		if at := c.listed(); at.client != nil && at.client.Identified() && at.client.Principal().Tenant == tenant {
			out = append(out, at.wire(gateway))
		}
	}
	return out
}

// wire returns the form in which the API has it.
func (l listing) wire(gateway string) wire.Connection {
	p, o := l.client.Principal(), l.client.Origin()
	out := wire.Connection{
		ID: o.Connection, Gateway: gateway, Protocol: o.Protocol, Tenant: p.Tenant.String(), Principal: p.Subject, Remote: o.Remote,
		Since: l.since.UTC(), Queued: l.queued, Watches: []wire.Watch{},
	}
	for _, s := range l.client.Watches().States() {
		w := watch(s)
		out.Watches, out.Lagging = append(out.Watches, w), out.Lagging || w.Reason != ""
	}
	return out
}

// watch returns the form of a viewer in the API.
func watch(s stream.State) wire.Watch {
	w := wire.Watch{Seq: s.Position, Behind: s.Behind(), Waiting: s.Waiting, Missed: s.Missed, Reason: string(s.Lag.Reason)}
	if s.Log != (subject.Log{}) {
		w.Log = string(s.Log.Kind) + "/" + s.Log.Entity.String()
	}
	if w.Reason != "" {
		w.Lagging = s.Lag.Since.UTC()
	}
	return w
}

// own returns the connections of this gateway that an operator may see.
func (s *Server) own(q command.ConnectionsRequest) []wire.Connection {
	return s.conns.listed(s.name.String(), q.Tenant)
}

// gateways returns the names of those in the directory.
func (s *Server) gateways() (out []string) {
	if s.dep.Directory == nil {
		return nil
	}
	for _, m := range s.dep.Directory.Members(directory.WhatService, command.Gateways) {
		out = append(out, m.Instance.String())
	}
	return out
}
