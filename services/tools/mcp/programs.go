package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools/internal/folder"
)

// programs are those of a server with Config.PerTenant: one for each tenant that calls it, started by its first call and ended when
// it has rested. The server's own program lists the tools, and runs no call. It is safe for concurrent use.
type programs struct {
	server *Server
	log    zerolog.Logger

	mu     sync.Mutex
	life   context.Context //nolint:containedctx // Of Run; nil before.
	own    map[id.Tenant]*program
	ending map[id.Tenant]*program
	ends   sync.WaitGroup
}

// program is that of a tenant. It takes calls while it is among the programs.
type program struct {
	*Server
	tenant id.Tenant
	calls  int       // in flight
	used   time.Time // when the last call ended
	rest   *time.Timer
	stop   context.CancelFunc
	ended  chan struct{}
}

// take returns the tenant's program for one call, and the function that ends the call. Errors are *fault.Fault.
func (p *programs) take(t id.Tenant) (*Server, func(), error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.own[t]
	if one == nil {
		var err error
		if one, err = p.start(t); err != nil {
			return nil, nil, err
		}
	}
	one.calls++
	return one.Server, func() { p.release(one) }, nil
}

func (p *programs) release(one *program) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one.calls--; one.calls == 0 {
		one.used = time.Now()
		one.rest.Reset(p.server.cfg.RestAfter)
	}
}

// start makes a program for the tenant: in place of the one that has rested longest, if no further one may run. It
// begins when that one has ended, and an earlier one of the tenant. The caller holds the lock.
func (p *programs) start(t id.Tenant) (*program, error) {
	if p.life == nil || p.life.Err() != nil {
		return nil, fault.New(fault.ToolsDown)
	}
	before := []*program{p.ending[t]}
	if len(p.own) >= p.server.cfg.MaxPrograms {
		resting := p.resting()
		if resting == nil {
			return nil, fault.Newf(fault.ToolsBusy, "All programs of the tool server %s are in use. Try again later.", p.server.cfg.Name)
		}
		p.end(resting)
		before = append(before, resting)
	}
	cfg, err := p.server.cfg.in(folder.Name(t))
	if err != nil {
		p.server.log.Error().Err(err).Stringer("tenant", t).Msg("failed to create folder for tool program")
		return nil, fault.Newf(fault.ToolsDown, "The tool server %s has no folder for your tenant. Tell the operator.", cfg.Name).Wrap(err)
	}
	log := p.log.With().Stringer("tenant", t).Logger()
	ctx, stop := context.WithCancel(p.life)
	one := &program{
		Server: New(cfg, Dial(cfg, log), log, func(string) { p.server.state(StateSame) }).Take(p.server.turns),
		tenant: t, stop: stop, ended: make(chan struct{}),
	}
	one.rest = time.AfterFunc(cfg.RestAfter, func() { p.rested(one) })
	p.own[t] = one
	p.ends.Go(func() {
		defer p.finish(one)
		for _, b := range before {
			if b != nil {
				<-b.ended
			}
		}
		one.Run(ctx)
	})
	return one, nil
}

// resting returns the program that has rested longest, nil if all have calls. The caller holds the lock.
func (p *programs) resting() (longest *program) {
	for _, one := range p.own {
		if one.calls == 0 && (longest == nil || one.used.Before(longest.used)) {
			longest = one
		}
	}
	return longest
}

// rested ends a program whose time is over, unless it has been called meanwhile.
func (p *programs) rested(one *program) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one.calls == 0 && p.own[one.tenant] == one && time.Since(one.used) >= p.server.cfg.RestAfter {
		p.end(one)
	}
}

// end ends a program, which takes no more calls. The caller holds the lock.
func (p *programs) end(one *program) {
	delete(p.own, one.tenant)
	p.ending[one.tenant] = one
	one.rest.Stop()
	one.stop()
}

// finish forgets a program that has ended.
func (p *programs) finish(one *program) {
	one.stop()
	close(one.ended)
	p.mu.Lock()
	if p.ending[one.tenant] == one {
		delete(p.ending, one.tenant)
	}
	if p.own[one.tenant] == one { // all end
		one.rest.Stop()
		delete(p.own, one.tenant)
	}
	p.mu.Unlock()
	p.server.state(StateSame)
}

// open lets programs start until ctx ends.
func (p *programs) open(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.life = ctx
}

// wait waits for the end of all programs. The context of open has ended.
func (p *programs) wait() {
	p.mu.Lock()
	p.life = nil
	p.mu.Unlock()
	p.ends.Wait()
}

// find returns the tenant's program, nil if none runs.
func (p *programs) find(t id.Tenant) *Server {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.own[t]; one != nil {
		return one.Server
	}
	return nil
}

// count returns how many programs run.
func (p *programs) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.own) + len(p.ending)
}
