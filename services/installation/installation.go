// Package installation answers operators' requests about the installation as a whole: dead letters, queues, quotas and the
// audit log. It keeps nothing, so any replica may answer.
package installation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/letters"
	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/internal/rpc"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Config describes the service. Conn and Log are required.
type Config struct {
	Conn     *bus.Conn
	Log      *eventlog.Store
	Queues   []id.Name        // services whose queues are listed also while they are empty
	Quota    quota.Policy     // in force
	Now      func() time.Time // nil = time.Now
	Logger   zerolog.Logger
	Registry prometheus.Registerer // may be nil
}

// maxUses bounds the quotas of an answer: the most used ones come first.
const maxUses = 1000

// nothing is the body of requests and answers without content.
type nothing struct{}

// New returns the service, a lifecycle component that is not started.
func New(cfg Config) *rpc.Server {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := rpc.NewServer(cfg.Conn, rpc.Config{
		Service: cmd.Installation, Description: "Shows queues, quotas and audit records, and shows and discards dead letters",
		Logger: cfg.Logger, Registry: cfg.Registry,
	})
	box := letters.New(cfg.Conn, cfg.Log)
	rpc.Handle(s, cmd.ListLetters, box.Page)
	rpc.Handle(s, cmd.ShowLetter, box.Letter)
	rpc.Handle(s, cmd.DiscardLetter, func(ctx context.Context, in cmd.LetterRequest) (nothing, error) {
		return nothing{}, box.Discard(ctx, in)
	})
	rpc.Handle(s, cmd.ListQueues, func(ctx context.Context, _ nothing) (api.QueueList, error) { return cfg.queues(ctx) })
	rpc.Handle(s, cmd.ListUse, cfg.use)
	rpc.Handle(s, cmd.ListRecords, cfg.records)
	rpc.Handle(s, cmd.VerifyRecords, cfg.verify)
	return s
}

// queues counts the commands that wait, of all tenants.
func (c Config) queues(ctx context.Context) (api.QueueList, error) {
	out := api.QueueList{Queues: []api.Queue{}, TakenAt: c.Now().UTC()}
	by, err := command.Depths(ctx, c.Conn)
	if err != nil {
		return out, unavailable(err)
	}
	for _, s := range c.Queues {
		if _, ok := by[s.String()]; !ok {
			by[s.String()] = command.Depth{}
		}
	}
	for _, service := range slices.Sorted(maps.Keys(by)) {
		d := by[service]
		out.Queues = append(out.Queues, api.Queue{Service: service, Waiting: d.Pending, Out: d.Out, Redelivered: d.Redelivered})
	}
	s, err := c.Conn.JS().Stream(ctx, subject.StreamCommands)
	if err != nil {
		return out, unavailable(fmt.Errorf("look at the queues: %w", err))
	}
	if all := s.CachedInfo().State; all.Msgs > 0 {
		out.Oldest = all.FirstTime.UTC()
	}
	return out, nil
}

// use lists how much of their quotas a principal and its tenant use.
func (c Config) use(ctx context.Context, in cmd.UseRequest) (api.QuotaList, error) {
	out := api.QuotaList{Quotas: []api.Quota{}}
	all, err := quota.InUseBy(ctx, c.Conn, c.Quota, in.Tenant, in.Principal, in.All, c.Now())
	if err != nil {
		return out, unavailable(err)
	}
	for _, u := range all[:min(len(all), maxUses)] {
		scope := quota.ScopeTenant
		if u.Principal != "" {
			scope = quota.ScopePrincipal
		}
		out.Quotas = append(out.Quotas, api.Quota{
			Scope: scope, Principal: u.Principal, Resource: u.Resource, Used: u.Used, Limit: u.Limit, Daily: u.Daily(),
		})
	}
	return out, nil
}

// records returns a page of the audit log.
func (c Config) records(ctx context.Context, in cmd.RecordsRequest) (api.AuditPage, error) {
	out := api.AuditPage{Records: []api.AuditRecord{}}
	q := audit.Query{Principal: in.Principal, Action: in.Action, Entity: in.Entity}
	page, err := audit.ReadPage(ctx, c.Log, in.Tenant, q, in.Before, in.Limit)
	if err != nil {
		return out, err
	}
	for _, r := range page.Records {
		out.Records = append(out.Records, api.AuditRecord{
			Seq: r.Sequence, Time: r.Time, Action: r.Action, Outcome: r.Outcome, Code: r.Code, Principal: r.Principal, Remote: r.Remote,
			Source: r.Source, Dialect: r.Dialect, Service: r.Service, Verb: r.Verb, Kind: r.Kind, Entity: r.Entity, Command: r.Command,
			Input: r.Input, Server: r.Server, Tool: r.Tool, Call: r.Call, Digest: r.Digest, Resource: r.Resource, Scope: r.Scope, Limit: r.Limit, Used: r.Used,
			CloseCode: r.CloseCode, DurationMS: r.DurationMS, Count: r.Count,
		})
	}
	if page.Next > 0 {
		out.Next, out.More = strconv.FormatUint(page.Next, 10), true
	}
	return out, nil
}

func unavailable(err error) error { return fault.New(fault.BusUnavailable).Wrap(err) }
