package task

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/task/roster"
)

const (
	// sweepEvery is how often the index drops tasks that another replica has taken over; forgotten
	// is the number of leases without a sign after which it does. A task that is handled here shows
	// a sign once a lease.
	sweepEvery = time.Minute
	forgotten  = 4
)

// reasonLost is why a task is released whose agent has left the directory.
const reasonLost = "agent_lost"

// watch follows the directory. It stores new participants, releases tasks of lost agents, and looks again
// at tasks that an agent may take now. The tasks' timers cover changes that it misses.
type watch struct {
	s    *Service
	life context.Context //nolint:containedctx // from New to stop
	end  context.CancelFunc
	wake chan struct{}
	done chan struct{}
	seen map[roster.Key]uint64 // hash of the last known state of each participant, without fields that do not matter
	hash maphash.Seed
}

func newWatch(s *Service) *watch {
	w := &watch{s: s, wake: make(chan struct{}, 1), done: make(chan struct{}), seen: map[roster.Key]uint64{}, hash: maphash.MakeSeed()}
	w.life, w.end = context.WithCancel(context.Background())
	close(w.done)
	return w
}

// start begins to follow the directory.
func (w *watch) start() {
	w.done = make(chan struct{})
	go w.run()
}

// stop ends the watch and waits for its end. It may be called more than once, and without a
// start.
func (w *watch) stop() {
	w.end()
	<-w.done
}

func (w *watch) run() {
	defer close(w.done)
	defer w.s.deps.Directory.Watch(func() {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	})()
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	for {
		w.look()
		select {
		case <-w.life.Done():
			return
		case <-w.wake:
		case <-sweep.C:
			w.s.index.forget(w.s.cfg.Now().Add(-forgotten * w.s.cfg.Rules.Lease))
			w.follow(w.s.index.all(), nil, nil)
		}
	}
}

// look handles what has changed in the directory.
func (w *watch) look() {
	came, says := map[id.Tenant]bool{}, map[agentKey]bool{}
	for key, p := range w.s.registry.Changes() {
		if p == nil {
			delete(w.seen, key)
			w.note(cmd.Participant{Kind: key.Kind, Tenant: key.Tenant, ID: key.ID}, true)
			says[agentKey{key.Tenant, key.ID}] = false
			continue
		}
		mark := maphash.String(w.hash, markOf(*p))
		if old, known := w.seen[key]; known && old == mark {
			continue
		}
		w.seen[key] = mark
		if key.Kind == cmd.ParticipantAgent {
			came[key.Tenant] = true
			says[agentKey{key.Tenant, key.ID}] = p.Online // on a new connection, perhaps, and of what it has
		}
		w.note(*p, false)
	}
	if _, everywhere := came[id.Tenant{}]; everywhere || hasShared(says) {
		w.follow(w.s.index.all(), came, says)
		return
	}
	w.follow(w.s.index.near(says, came), came, says)
}

// hasShared reports whether an agent of all tenants is among them.
func hasShared(agents map[agentKey]bool) bool {
	for a := range agents {
		if a.tenant.IsZero() {
			return true
		}
	}
	return false
}

// follow handles tasks whose agent has changed, or that wait while an agent of their tenant has.
func (w *watch) follow(tasks map[subject.Log]place, came map[id.Tenant]bool, says map[agentKey]bool) {
	for log, p := range tasks {
		if p.agent == "" {
			if came[log.Tenant] || came[id.Tenant{}] {
				w.poke(log)
			}
			continue
		}
		agent, there := w.s.registry.Agent(log.Tenant, p.agent)
		switch {
		case !there:
			w.release(log, p)
		case p.unsaid && agent.Online, says[agentKey{log.Tenant, p.agent}]:
			w.poke(log)
		}
	}
}

// markOf returns the part of a participant whose change concerns tasks or the registry.
func markOf(p cmd.Participant) string {
	caps := slices.Clone(p.Capabilities)
	slices.Sort(caps)
	return fmt.Sprint(p.Online, p.Full, p.Knows, p.Holds, p.Status, p.Name, p.Connection, strings.Join(caps, "\x00"), len(p.Tools), p.Description)
}

// note remembers a participant. Of one that has gone the entry is written again, so that it
// lasts from now on. The built-in agents of all tenants have new ids in every process
// and are not expected back.
func (w *watch) note(p cmd.Participant, gone bool) {
	if p.Tenant.IsZero() {
		return
	}
	if gone {
		known, ok := w.s.registry.Stored(roster.KeyOf(p))
		if !ok {
			return
		}
		p = known
	}
	if err := w.s.registry.Note(w.life, p, gone); err != nil && w.life.Err() == nil {
		w.s.deps.Logger.Warn().Err(err).Str("participant", p.ID).Msg("failed to store participant in registry")
	}
}

// poke has the task looked at again.
func (w *watch) poke(log subject.Log) {
	w.send(log, cmd.Command{ID: fmt.Sprintf("poke-%d", w.s.cfg.Now().UnixNano()), Verb: cmd.CheckTask})
}

// release takes the task from a lost agent.
func (w *watch) release(log subject.Log, p place) {
	w.send(log, gone(p, reasonLost))
}

func (w *watch) send(log subject.Log, c cmd.Command) {
	c.Service, c.Tenant, c.Key = cmd.Task, log.Tenant, log.Entity
	if err := w.s.send(w.life, c); err != nil && w.life.Err() == nil {
		w.s.deps.Logger.Warn().Err(err).Str("task", log.String()).Msg("failed to send task command; its timer will retry")
	}
}

// gone returns the command that takes a task from its agent. One attempt is released
// once for each reason.
func gone(p place, reason string) cmd.Command {
	return cmd.Command{
		ID: fmt.Sprintf("%s.%d", reason, p.attempt), Verb: cmd.ReleaseTask,
		Data: encode(cmd.AgentGone{TaskID: p.task, AgentID: p.agent, Attempt: p.attempt, Reason: reason}),
	}
}
