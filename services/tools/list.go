package tools

import (
	"context"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Types of servers.
const (
	typeProgram = "stdio"
	typeHTTP    = "http"
	typeFiles   = "filesystem" // the built-in one
	typeService = "service"
)

// List returns the tools on offer. See Caller.
func (s *Service) List(ctx context.Context, tenant id.Tenant) ([]Tool, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.New(fault.ToolsDown).Wrap(err)
	}
	list := []Tool{}
	for _, srv := range s.servers {
		if srv.cfg.visible(tenant) {
			list = append(list, srv.offered()...)
		}
	}
	if s.swarm != nil {
		v, _ := s.swarm.look()
		for at, k := range v.offered {
			if at.tenant == tenant {
				list = append(list, k.Tool)
			}
		}
	}
	sortTools(list)
	return list, nil
}

// Servers returns the servers that the tenant may see. See Toolbox.
func (s *Service) Servers(ctx context.Context, tenant id.Tenant, kind string) ([]Server, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.New(fault.ToolsDown).Wrap(err)
	}
	list := []Server{}
	for _, srv := range s.servers {
		if srv.cfg.visible(tenant) && (kind == "" || kind == KindMCP) {
			list = append(list, srv.describe())
		}
	}
	if s.swarm != nil && (kind == "" || kind == KindService) {
		v, _ := s.swarm.look()
		for _, svc := range v.of(tenant) {
			list = append(list, svc.describe())
		}
	}
	slices.SortFunc(list, func(a, b Server) int { return strings.Compare(a.order(), b.order()) })
	return list, nil
}

// ToolsOf returns a server and its tools. See Toolbox.
func (s *Service) ToolsOf(ctx context.Context, tenant id.Tenant, kind, server string) (Server, []Tool, error) {
	if err := ctx.Err(); err != nil {
		return Server{}, nil, fault.New(fault.ToolsDown).Wrap(err)
	}
	switch kind {
	case KindMCP:
		if srv := s.serverNamed(tenant, server); srv != nil {
			list := srv.offered()
			sortTools(list)
			return srv.describe(), list, nil
		}
		return Server{}, nil, fault.New(fault.ServerNotFound)
	case KindService:
		if s.swarm != nil {
			v, _ := s.swarm.look()
			if svc := v.find(tenant, server); svc != nil {
				return svc.describe(), svc.offered(), nil
			}
		}
		return Server{}, nil, fault.New(fault.ServiceNotFound)
	}
	return Server{}, nil, badKind()
}

func badKind() error {
	return fault.Newf(fault.ToolBadInput, "The kind of a server is %s or %s.", KindMCP, KindService).At("kind")
}

// order is a server's place in lists: by kind, then by id.
func (s Server) order() string { return s.Kind + "\x00" + s.ID }

func sortTools(list []Tool) {
	slices.SortFunc(list, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
}

// serverNamed returns the MCP server of that name if the tenant may see it, or nil.
func (s *Service) serverNamed(tenant id.Tenant, name string) *server {
	for _, srv := range s.servers {
		if srv.cfg.Name == name && srv.cfg.visible(tenant) {
			return srv
		}
	}
	return nil
}

// describe tells what the server is and how it is now.
func (s *server) describe() Server {
	out := Server{
		Kind: KindMCP, ID: s.cfg.Name, Name: s.cfg.Name, Type: typeFiles,
		Status: command.StatusInactive, Capabilities: []string{},
	}
	switch {
	case len(s.cfg.Command) > 0:
		out.Type = typeProgram
	case s.cfg.URL != "":
		out.Type = typeHTTP
	}
	if s.connected() {
		out.Status = command.StatusActive
	}
	for _, t := range s.offered() {
		out.Capabilities = append(out.Capabilities, t.Own)
		if verb, _, _ := strings.Cut(t.Own, "_"); out.Type == typeFiles {
			out.Capabilities = append(out.Capabilities, verb) // read, write, list, search
		}
	}
	slices.Sort(out.Capabilities)
	return out
}
