// Package status reads the status of an installation from the directory: the replicas of each service, the models with the
// reachability of their providers, and the tool servers without a connection.
package status

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/worker/card"
)

// status is a status in the making.
type status api.Status

// Read returns the status of an installation that has the services, for its operators.
func Read(d *directory.Directory, services []id.Name) api.Status { return read(d, services, true) }

// Public is Read for everyone: it does not tell what is wrong with tool servers that only some tenants may use.
func Public(d *directory.Directory, services []id.Name) api.Status { return read(d, services, false) }

func read(d *directory.Directory, services []id.Name, all bool) api.Status {
	s := status{Services: []api.ServiceStatus{}, Models: []api.ModelStatus{}, ToolServers: []api.ToolServerStatus{}}
	for _, name := range services {
		members := d.Members(directory.WhatService, name)
		s.Services = append(s.Services, api.ServiceStatus{Name: name.String(), Replicas: len(members)})
		for _, m := range members {
			s.addModel(m, all)
			s.addTools(m, all)
		}
	}
	slices.SortFunc(s.Models, func(a, b api.ModelStatus) int { return cmp.Or(b.Workers-a.Workers, cmp.Compare(a.Name, b.Name)) })
	slices.SortFunc(s.ToolServers, func(a, b api.ToolServerStatus) int { return cmp.Compare(a.Name, b.Name) })
	return api.Status(s)
}

func (s *status) addModel(m directory.Member, all bool) {
	c, ok := card.Read(m)
	if !ok {
		return
	}
	i := slices.IndexFunc(s.Models, func(x api.ModelStatus) bool { return x.Name == c.Model })
	if i < 0 {
		s.Models = append(s.Models, api.ModelStatus{Name: c.Model})
		i = len(s.Models) - 1
	}
	s.Models[i].Workers++
	s.Models[i].Trouble = cmp.Or(s.Models[i].Trouble, c.Trouble)
	for _, l := range c.LeftOut {
		if one := (api.LeftOutTool{Tool: l.Tool, Why: l.Why}); all && !slices.Contains(s.Models[i].LeftOut, one) {
			s.Models[i].LeftOut = append(s.Models[i].LeftOut, one)
		}
	}
}

func (s *status) addTools(m directory.Member, all bool) {
	var c tools.Card
	if m.Name != tools.ServiceName || json.Unmarshal(m.Data, &c) != nil {
		return
	}
	for _, name := range c.Servers {
		i := slices.IndexFunc(s.ToolServers, func(x api.ToolServerStatus) bool { return x.Name == name })
		if i < 0 {
			s.ToolServers = append(s.ToolServers, api.ToolServerStatus{Name: name})
			i = len(s.ToolServers) - 1
		}
		s.ToolServers[i].Replicas++
		if slices.Contains(c.Down, name) {
			s.ToolServers[i].Down++
		}
		if r := c.Reports[name]; all || !r.Tenants {
			report(&s.ToolServers[i], r)
		}
	}
}

// report adds what a replica reports of a tool server.
func report(s *api.ToolServerStatus, r tools.Report) {
	s.Trouble, s.Programs = cmp.Or(s.Trouble, r.Trouble), s.Programs+r.Programs
	for _, l := range r.LeftOut {
		if one := (api.LeftOutTool{Tool: l.Tool, Why: l.Why}); !slices.Contains(s.LeftOut, one) {
			s.LeftOut = append(s.LeftOut, one)
		}
	}
}
