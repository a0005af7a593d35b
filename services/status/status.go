// Package status tells what a running installation consists of: which services have
// replicas, which models answer and whether their providers can be reached, and which tool
// servers are down. All of it is what processes say of themselves in the directory.
package status

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/api"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/worker/card"
)

// Status is an installation as it is now.
type Status struct {
	Version     string       `json:"version,omitempty"`
	Services    []Service    `json:"services"`
	Models      []Model      `json:"models"`
	ToolServers []ToolServer `json:"tool_servers"`
}

// Service is a role of processes.
type Service struct {
	Name     string `json:"name"`
	Replicas int    `json:"replicas"`
}

// Model is a model that workers answer with. Trouble says why its provider cannot be used,
// as a worker has found; empty if it can.
type Model struct {
	Name    string `json:"name"`
	Workers int    `json:"workers"`
	Trouble string `json:"trouble,omitempty"`
}

// ToolServer is a tool server of the configuration. Down is how many of the replicas that
// have it are not connected to it.
type ToolServer struct {
	Name     string `json:"name"`
	Replicas int    `json:"replicas"`
	Down     int    `json:"down"`
}

// Read returns the status of an installation that has the services.
func Read(d *directory.Directory, services []id.Name) Status {
	s := Status{Services: []Service{}, Models: []Model{}, ToolServers: []ToolServer{}}
	for _, name := range services {
		members := d.Members(directory.WhatService, name)
		s.Services = append(s.Services, Service{Name: name.String(), Replicas: len(members)})
		for _, m := range members {
			s.addModel(m)
			s.addTools(m)
		}
	}
	slices.SortFunc(s.Models, func(a, b Model) int { return cmp.Or(b.Workers-a.Workers, cmp.Compare(a.Name, b.Name)) })
	slices.SortFunc(s.ToolServers, func(a, b ToolServer) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

func (s *Status) addModel(m directory.Member) {
	c, ok := card.Read(m)
	if !ok {
		return
	}
	i := slices.IndexFunc(s.Models, func(x Model) bool { return x.Name == c.Model })
	if i < 0 {
		s.Models = append(s.Models, Model{Name: c.Model})
		i = len(s.Models) - 1
	}
	s.Models[i].Workers++
	s.Models[i].Trouble = cmp.Or(s.Models[i].Trouble, c.Trouble)
}

func (s *Status) addTools(m directory.Member) {
	var c tools.Card
	if m.Name != tools.ServiceName || json.Unmarshal(m.Data, &c) != nil {
		return
	}
	for _, name := range c.Servers {
		i := slices.IndexFunc(s.ToolServers, func(x ToolServer) bool { return x.Name == name })
		if i < 0 {
			s.ToolServers = append(s.ToolServers, ToolServer{Name: name})
			i = len(s.ToolServers) - 1
		}
		s.ToolServers[i].Replicas++
		if slices.Contains(c.Down, name) {
			s.ToolServers[i].Down++
		}
	}
}

// API answers GET /api/v1/status for everybody who may watch.
type API struct {
	dir      *directory.Directory
	services []id.Name
	version  string
	server   api.Server
}

// NewAPI returns the API over the directory.
func NewAPI(d *directory.Directory, services []id.Name, version string, a auth.Authenticator, logger zerolog.Logger) *API {
	return &API{dir: d, services: services, version: version, server: api.Server{Auth: a, Logger: logger}}
}

// Mount registers the API's route.
func (a *API) Mount(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/v1/status", a.server.Serve(func(*http.Request, auth.Principal) (any, error) {
		s := Read(a.dir, a.services)
		s.Version = a.version
		return s, nil
	}))
}
