package service

import (
	"context"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/internal/offer"
	"github.com/waggle-dev/waggle/services/tools/mcp"
)

// List returns the tools on offer. See tools.Caller.
func (s *Service) List(ctx context.Context, tenant id.Tenant) ([]tools.Tool, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.New(fault.ToolsDown).Wrap(err)
	}
	list := []tools.Tool{}
	for _, srv := range s.servers {
		if srv.Visible(tenant) {
			list = append(list, srv.Offered()...)
		}
	}
	if s.swarm != nil {
		list = append(list, s.swarm.Tools(tenant)...)
	}
	offer.Sort(list)
	return list, nil
}

// Servers returns the servers that the tenant may see. See tools.Toolbox.
func (s *Service) Servers(ctx context.Context, tenant id.Tenant, kind string) ([]tools.Server, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.New(fault.ToolsDown).Wrap(err)
	}
	list := []tools.Server{}
	for _, srv := range s.servers {
		if srv.Visible(tenant) && (kind == "" || kind == tools.KindMCP) {
			list = append(list, srv.Describe(tenant))
		}
	}
	if s.swarm != nil && (kind == "" || kind == tools.KindService) {
		list = append(list, s.swarm.Servers(tenant)...)
	}
	slices.SortFunc(list, func(a, b tools.Server) int { return strings.Compare(a.Order(), b.Order()) })
	return list, nil
}

// ToolsOf returns a server and its tools. See tools.Toolbox.
func (s *Service) ToolsOf(ctx context.Context, tenant id.Tenant, kind, server string) (tools.Server, []tools.Tool, error) {
	if err := ctx.Err(); err != nil {
		return tools.Server{}, nil, fault.New(fault.ToolsDown).Wrap(err)
	}
	switch kind {
	case tools.KindMCP:
		if srv := s.serverNamed(tenant, server); srv != nil {
			list := srv.Offered()
			offer.Sort(list)
			return srv.Describe(tenant), list, nil
		}
		return tools.Server{}, nil, fault.New(fault.ServerNotFound)
	case tools.KindService:
		if s.swarm != nil {
			if svc, list, ok := s.swarm.ToolsOf(tenant, server); ok {
				return svc, list, nil
			}
		}
		return tools.Server{}, nil, fault.New(fault.ServiceNotFound)
	}
	return tools.Server{}, nil, tools.BadKind()
}

// serverNamed returns the MCP server of that name if the tenant may see it, or nil.
func (s *Service) serverNamed(tenant id.Tenant, name string) *mcp.Server {
	for _, srv := range s.servers {
		if srv.Name() == name && srv.Visible(tenant) {
			return srv
		}
	}
	return nil
}

// serverOf returns the server that an offered name belongs to, or nil.
func (s *Service) serverOf(tenant id.Tenant, tool string) *mcp.Server {
	for _, srv := range s.servers {
		if offer.BelongsTo(tool, srv.Name()) && srv.Visible(tenant) {
			return srv
		}
	}
	return nil
}
