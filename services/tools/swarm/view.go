package swarm

import (
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/internal/offer"
)

// view holds a tenant's services at one moment. It is immutable.
type view struct {
	services map[serviceKey]*service
	offered  map[offeredKey]*offer.Tool
	online   map[string]bool // connections, by the id of the replica
}

// service has all replicas of one id in one tenant.
type service struct {
	key      serviceKey
	replicas []*replica             // the oldest first
	tools    map[string]*offer.Tool // of all replicas, the youngest's where they differ
}

// newView sorts replicas by service. Models are offered the tools of the listed services.
func newView(all []*replica, listed []string) *view {
	v := &view{
		services: make(map[serviceKey]*service), offered: make(map[offeredKey]*offer.Tool), online: make(map[string]bool),
	}
	slices.SortFunc(all, func(a, b *replica) int {
		if c := a.participant.Since.Compare(b.participant.Since); c != 0 {
			return c
		}
		return strings.Compare(a.id, b.id)
	})
	for _, r := range all {
		v.online[r.id] = r.participant.Online
		key := serviceKey{r.participant.Tenant, r.participant.ID}
		svc := v.services[key]
		if svc == nil {
			svc = &service{key: key, tools: make(map[string]*offer.Tool)}
			v.services[key] = svc
		}
		svc.replicas = append(svc.replicas, r)
		for own, k := range r.tools {
			svc.tools[own] = k
		}
	}
	for _, svc := range v.sorted() {
		if !svc.listed(listed) {
			continue
		}
		for _, k := range svc.tools {
			at := offeredKey{svc.key.tenant, k.Name}
			if v.offered[at] == nil { // Only a forged hash can make two names equal.
				v.offered[at] = k
			}
		}
	}
	return v
}

// listed reports whether a list of services, by id or name, has the service.
func (s *service) listed(list []string) bool {
	return slices.ContainsFunc(list, func(name string) bool {
		return name == everyService || name == s.key.id || name == s.youngest().participant.Name
	})
}

// sorted returns the services by tenant and id.
func (v *view) sorted() []*service {
	list := make([]*service, 0, len(v.services))
	for _, svc := range v.services {
		list = append(list, svc)
	}
	slices.SortFunc(list, func(a, b *service) int {
		if c := strings.Compare(a.key.tenant.String(), b.key.tenant.String()); c != 0 {
			return c
		}
		return strings.Compare(a.key.id, b.key.id)
	})
	return list
}

// of returns the services of a tenant, sorted by id.
func (v *view) of(tenant id.Tenant) []*service {
	return slices.DeleteFunc(v.sorted(), func(svc *service) bool { return svc.key.tenant != tenant })
}

// find returns the tenant's service of that id, or else the only one of that name.
func (v *view) find(tenant id.Tenant, server string) *service {
	if svc := v.services[serviceKey{tenant, server}]; svc != nil {
		return svc
	}
	var found *service
	for _, svc := range v.of(tenant) {
		if svc.youngest().participant.Name == server {
			if found != nil {
				return nil
			}
			found = svc
		}
	}
	return found
}

// tool returns the service's tool of that id, or else the only one of that name.
func (s *service) tool(own string) *offer.Tool {
	if k := s.tools[own]; k != nil {
		return k
	}
	var found *offer.Tool
	for _, k := range s.tools {
		if k.Title == own && own != "" {
			if found != nil {
				return nil
			}
			found = k
		}
	}
	return found
}

func (s *service) youngest() *replica { return s.replicas[len(s.replicas)-1] }

// statuses lists the statuses, the best first.
var statuses = []string{
	command.StatusActive, command.StatusBusy, command.StatusInitializing, command.StatusMaintenance, command.StatusError, command.StatusInactive,
}

// describe returns the service's description with its current status.
func (s *service) describe() tools.Server {
	p := s.youngest().participant
	best := len(statuses) - 1
	for _, r := range s.replicas {
		if i := slices.Index(statuses, r.participant.Status); r.participant.Online && i >= 0 {
			best = min(best, i)
		}
	}
	return tools.Server{
		Kind: tools.KindService, ID: p.ID, Name: p.Name, Type: typeService, Status: statuses[best],
		Capabilities: append([]string{}, p.Capabilities...), Description: p.Description, Extra: p.Extra,
		Replicas: len(s.replicas), Since: s.replicas[0].participant.Since,
	}
}

func (s *service) offered() []tools.Tool {
	list := make([]tools.Tool, 0, len(s.tools))
	for _, k := range s.tools {
		list = append(list, k.Tool)
	}
	offer.Sort(list)
	return list
}

// serviceKey identifies a service. The same id in two tenants means two services.
type serviceKey struct {
	tenant id.Tenant
	id     string
}

type offeredKey struct {
	tenant id.Tenant
	name   string
}

// everyService lists all services.
const everyService = "*"

// typeService is the type of services in descriptions.
const typeService = "service"
