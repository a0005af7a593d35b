package process

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/cmd/waggle/rates"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/rpc"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/services/checkup"
	"github.com/waggle-dev/waggle/services/status"
)

const (
	// checkupAge is how long the findings of one look are good enough for others who ask.
	checkupAge = 3 * time.Second
	// checkupTime bounds one look: some fifty requests to NATS.
	checkupTime = 20 * time.Second
)

// inspector looks at the installation for operators, once at a time.
type inspector struct {
	p  *process
	mu sync.Mutex
	at time.Time
	is api.Installation
}

// look returns what the installation is like now.
func (i *inspector) look(ctx context.Context) (api.Installation, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if time.Since(i.at) < checkupAge {
		return i.is, nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkupTime)
	defer cancel()
	nc := i.p.conn.NATS()
	is := api.Installation{
		Gateway: i.p.instance.String(), NATS: api.NATSServer{Name: nc.ConnectedServerName(), Version: nc.ConnectedServerVersion()},
		Processes: i.p.processes(),
	}
	is.UpToDate = !slices.ContainsFunc(is.Processes, func(x api.ProcessInfo) bool { return x.Version != i.p.Version })
	is.Findings = i.p.findings(ctx)
	if err := ctx.Err(); err != nil {
		return is, err
	}
	is.TakenAt = i.p.clock.Now().UTC()
	i.is, i.at = is, time.Now()
	return is, nil
}

// processes lists the replicas of all roles.
func (p *process) processes() []api.ProcessInfo {
	out := []api.ProcessInfo{}
	for _, role := range Services() {
		for _, m := range p.directory.Members(directory.WhatService, role) {
			out = append(out, api.ProcessInfo{Role: role.String(), Instance: m.Instance.String(), Version: m.Version, Go: m.Go, Started: m.Started.UTC()})
		}
	}
	slices.SortStableFunc(out, func(a, b api.ProcessInfo) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Instance, b.Instance))
	})
	return out
}

// findings makes the checks of the doctor that are about the installation, as the user of NATS that this process is. Its checks of
// a machine stay with the doctor.
func (p *process) findings(ctx context.Context) []api.Finding {
	all := slices.Concat(
		checkup.Streams(ctx, p.conn, Topology(p.Config)), checkup.Copies(ctx, p.conn), p.queued(ctx), checkup.Letters(ctx, p.conn, p.clock.Now()),
		checkup.Clock(ctx, p.conn), checkup.Roles(status.Read(p.directory, Services())),
	)
	out := make([]api.Finding, len(all))
	for i, f := range all {
		out[i] = api.Finding{Level: string(f.Level), What: f.What, Is: f.Is, Do: f.Do}
	}
	return out
}

// queued judges the queues, which the role session counts.
func (p *process) queued(ctx context.Context) []checkup.Finding {
	var list api.QueueList
	if err := rpc.Call(ctx, p.conn, cmd.Installation, cmd.ListQueues, struct{}{}, &list); err != nil {
		return checkup.One(checkup.Warn, "queues", "the queues cannot be measured: "+err.Error(), "start the role session, which counts them")
	}
	waiting := map[string]uint64{}
	for _, q := range list.Queues {
		waiting[q.Service] = q.Waiting
	}
	return checkup.Queues(waiting)
}

// fleet returns the rates of all processes.
func (p *process) fleet() *rates.Fleet {
	self := api.RateProcess{Instance: p.instance.String(), Roles: slices.Sorted(slices.Values(p.Use.Roles))}
	return rates.NewFleet(p.rates, self, func() (out []api.RateProcess) {
		at := map[string]int{}
		for _, r := range p.processes() {
			i, ok := at[r.Instance]
			if !ok {
				i = len(out)
				at[r.Instance], out = i, append(out, api.RateProcess{Instance: r.Instance})
			}
			out[i].Roles = append(out[i].Roles, r.Role)
		}
		return out
	})
}
