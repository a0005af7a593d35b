package process

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/quota"
	record "github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// openAudit opens the audit log in processes whose roles write audit records.
func (p *process) openAudit() (err error) {
	c := p.Config.Audit
	if !c.Enabled || !slices.Contains(p.streams(), subject.StreamAudit) {
		return nil
	}
	p.audit, err = audit.New(p.conn, audit.Options{
		Remote: c.Remote, RemoteKey: []byte(c.RemoteKey.Reveal()), Waiting: c.Waiting,
		Source: "waggle/" + p.name() + "/" + p.instance.String(), Registry: p.registry, Logger: p.Logger, Now: p.clock.Now,
	})
	if err != nil {
		return err
	}
	p.closers = append(p.closers, p.audit.Close)
	return nil
}

// quotas returns the dependencies of the quota holders.
func (p *process) quotas() quota.Config {
	return quota.Config{Conn: p.conn, Now: p.clock.Now, Policy: p.Config.Quota.Policy(), Refused: func(r quota.Refusal) {
		limit, used := r.Amounts()
		if p.audit == nil {
			p.Logger.Warn().Stringer("tenant", r.Tenant).Stringer("resource", r.Resource).Float64("limit", limit).Float64("used", used).Msg("request rejected: quota exceeded")
		}
		p.audit.Record(record.QuotaRefused, r.Tenant, record.Record{
			Outcome: record.Denied, Principal: r.Principal, Resource: r.Resource.String(), Scope: r.Scope, Limit: limit, Used: used,
		})
	}}
}

// ofDay returns the quotas of the day, which all roles of the process share: it is one holder. The role task by itself may count calls of
// tools only.
func (p *process) ofDay(ctx context.Context) (*quota.Daily, error) {
	if p.daily == nil {
		var resources []id.Name
		if p.role() == permission.Task {
			resources = []id.Name{record.ToolCalls}
		}
		d, err := quota.OpenDaily(ctx, p.quotas(), resources...)
		if err != nil {
			return nil, err
		}
		p.daily = d
		p.closers = append(p.closers, d.Close)
	}
	return p.daily, nil
}

// connections opens the quota of connections of this gateway.
func (p *process) connections(ctx context.Context) (*quota.Connections, error) {
	cfg := p.quotas()
	cfg.Alive = gateways(p.directory)
	q, err := quota.OpenConnections(ctx, cfg)
	if err != nil {
		return nil, err
	}
	p.closers = append(p.closers, q.Close)
	return q, nil
}

// listedFor is the lifetime of a cached list of gateways: far shorter than their leases.
const listedFor = time.Second

// gateways returns a predicate that reports whether the directory lists a gateway.
func gateways(d *directory.Directory) func(id.Entity) bool {
	var mu sync.Mutex
	var read time.Time
	listed := map[string]bool{}
	name := id.MustName("gateway")
	return func(instance id.Entity) bool {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(read) > listedFor {
			read = now
			clear(listed)
			for _, m := range d.Members(directory.WhatService, name) {
				listed[m.Instance.String()] = true
			}
		}
		return listed[instance.String()]
	}
}
