package team

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/internal/directory"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// pulseEvery is how often the other replicas are asked whether they live. A team whose
	// relay was killed stands still for so long at most, and a start of the relay; the
	// directory alone would take its lease of 30 s.
	pulseEvery = 500 * time.Millisecond
	// pulseWait bounds one answer. A missing answer proves nothing; only the server's report that
	// the subject has no subscriber does, and it comes at once.
	pulseWait = 2 * time.Second
)

// pulse knows which listed replicas are dead: those whose subject has no subscriber. The server
// ends the subscriptions of a killed process when its connection ends. The result is a hint, as the
// directory is: a replica that is alive though listed as dead relays beside its successor for a
// while, which does no harm. It is safe for concurrent use.
type pulse struct {
	s    *Service
	life context.Context //nolint:containedctx // of the questions, ended by stop
	end  context.CancelFunc
	work sync.WaitGroup

	mu    sync.Mutex
	ended bool
	dead  map[id.Name]bool
}

func newPulse(s *Service) *pulse {
	p := &pulse{s: s, dead: map[id.Name]bool{}}
	p.life, p.end = context.WithCancel(context.Background())
	return p
}

// alive is the subject on which a replica says that it lives.
func alive(instance id.Name) string { return subject.RPC(cmd.Team, instance) }

// start begins to answer and to ask. It has to come before the directory lists the
// replica.
func (p *pulse) start(ctx context.Context) error {
	nc := p.s.deps.Conn.NATS()
	sub, err := nc.Subscribe(alive(p.s.deps.Instance), func(m *nats.Msg) {
		_ = m.Respond(nil) // the asking replica asks again
	})
	if err != nil {
		return fmt.Errorf("say that the replica lives: %w", err)
	}
	if !p.begin(sub) {
		return errors.Join(errStopped, sub.Unsubscribe())
	}
	if err := p.s.deps.Conn.Flush(ctx); err != nil {
		return fmt.Errorf("say that the replica lives: %w", err)
	}
	return nil
}

// begin runs the pulse, unless it has been stopped.
func (p *pulse) begin(sub *nats.Subscription) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.work.Go(func() { p.run(sub) })
	}
	return !p.ended
}

// stop ends both. It may be called more than once, also if start was not, and while it is
// running.
func (p *pulse) stop() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.end()
	p.work.Wait()
}

func (p *pulse) run(sub *nats.Subscription) {
	t := time.NewTicker(pulseEvery)
	defer t.Stop()
	for {
		select {
		case <-p.life.Done():
			_ = sub.Unsubscribe() // the connection may be gone, and the subscription with it
			return
		case <-t.C:
			if len(p.s.registry.on()) > 0 { // else nothing depends on it
				p.feel(p.life)
			}
		}
	}
}

// feel asks all other replicas at once, and divides the teams anew if one has died, or was listed
// as dead and is alive.
func (p *pulse) feel(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pulseWait)
	defer cancel()
	changed := false
	var asked sync.WaitGroup
	listed := map[id.Name]bool{}
	for _, m := range p.s.deps.Directory.Members(directory.WhatService, cmd.Team) {
		if listed[m.Instance] = true; m.Instance == p.s.deps.Instance {
			continue
		}
		asked.Go(func() {
			_, err := p.s.deps.Conn.NATS().RequestWithContext(ctx, alive(m.Instance), nil)
			dead := errors.Is(err, nats.ErrNoResponders)
			if err != nil && !dead {
				return
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			changed = changed || p.dead[m.Instance] != dead
			p.dead[m.Instance] = dead
		})
	}
	asked.Wait()
	p.mu.Lock()
	for instance := range p.dead {
		if !listed[instance] {
			delete(p.dead, instance)
		}
	}
	p.mu.Unlock()
	if changed {
		p.s.owners.wake()
	}
}

// living returns those of the members that are not dead.
func (p *pulse) living(members []directory.Member) []directory.Member {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]directory.Member, 0, len(members))
	for _, m := range members {
		if !p.dead[m.Instance] {
			out = append(out, m)
		}
	}
	return out
}
