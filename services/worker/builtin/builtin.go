// Package builtin is the built-in assistant: an agent of the swarm that does tasks with the model
// of the installation, so that clients get answers without an agent of their own.
//
// It works like an agent without a socket: it has a lease in the directory, gets its tasks as
// direct messages, and reports by commands. It serves all tenants.
//
// Each task runs as a chat in a session of its own, whose ids derive from the task's. After a crash
// the next holder of the task therefore continues the same run, or finds its answer. The package
// asks no model itself: workers do the run.
package builtin

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/payload"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/worker/card"
)

const (
	// defaultName is the agent's name for clients.
	defaultName = "assistant"
	// defaultConcurrency is four times the concurrency of a worker: the further jobs wait in
	// the queue of the workers.
	defaultConcurrency = 64
	// selfBytes is the length of an instance's random name: 80 bits.
	selfBytes = 16
)

// Config holds the settings of the agent. Zero values mean the defaults.
type Config struct {
	Name         string   // its name for clients; default "assistant"
	Capabilities []string // offered capabilities; default card.General
	Description  string
	Concurrency  int              // tasks accepted at once; default 64
	Now          func() time.Time // nil = time.Now
}

// Deps are the dependencies of the agent.
type Deps struct {
	Conn      *bus.Conn
	Log       *eventlog.Store
	Commands  *command.Sender
	Directory *directory.Directory
	Logger    zerolog.Logger
}

// Agent is a lifecycle component. Any number of them may run, in any processes.
type Agent struct {
	cfg      Config
	deps     Deps
	payloads *payload.Store

	self id.Name // in the place of a gateway and of a connection
	id   string

	lease *directory.Lease
	sub   *nats.Subscription
	life  context.Context //nolint:containedctx // of the tasks: from New to Stop
	end   context.CancelFunc
	jobs  sync.WaitGroup

	mu      sync.Mutex
	on      map[subject.Log]*job
	status  string // as the directory was told
	leaving bool
}

// New returns an agent that is not started.
func New(cfg Config, deps Deps) (*Agent, error) {
	cfg.Name = cmp.Or(cfg.Name, defaultName)
	cfg.Concurrency = cmp.Or(cfg.Concurrency, defaultConcurrency)
	if len(cfg.Capabilities) == 0 {
		cfg.Capabilities = []string{card.General}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	self, err := id.ParseName("b" + strings.ToLower(rand.Text()[:selfBytes]))
	if err != nil {
		return nil, fmt.Errorf("built-in agent: %w", err)
	}
	a := &Agent{cfg: cfg, deps: deps, payloads: payload.New(deps.Conn), self: self, id: cfg.Name + "-" + self.String(), on: map[subject.Log]*job{}, status: cmd.StatusActive}
	a.life, a.end = context.WithCancel(context.Background())
	return a, nil
}

// Name implements lifecycle.Component.
func (a *Agent) Name() string { return "builtin agent" }

// Start listens for tasks and then takes the agent's place in the directory.
func (a *Agent) Start(ctx context.Context) error {
	var err error
	if a.sub, err = a.deps.Conn.NATS().Subscribe(subject.DirectFilter(a.self), a.direct); err != nil {
		return fmt.Errorf("built-in agent: %w", err)
	}
	data, err := a.says(cmd.StatusActive)
	if err == nil {
		a.lease, err = a.deps.Directory.Join(ctx, directory.Member{What: cmd.WhatAgent, Name: a.self, Instance: a.self, Data: data})
	}
	if err != nil {
		a.Stop() //nolint:contextcheck // ending takes a context of its own
		return fmt.Errorf("built-in agent: join the directory: %w", err)
	}
	return nil
}

// says is the agent's entry in the directory.
func (a *Agent) says(status string) (json.RawMessage, error) {
	raw, err := json.Marshal(cmd.Participant{
		Kind: cmd.ParticipantAgent, ID: a.id, Name: a.cfg.Name, Capabilities: a.cfg.Capabilities, Description: a.cfg.Description,
		Status: status, Full: status == cmd.StatusBusy, Gateway: a.self.String(), Connection: a.self.String(), Online: true,
	})
	if err != nil {
		return nil, fmt.Errorf("encode the entry of the built-in agent: %w", err)
	}
	return raw, nil
}

// Drain accepts no new tasks, finishes those in progress within ctx, and leaves the directory: then
// other instances get the rest.
func (a *Agent) Drain(ctx context.Context) error {
	a.mu.Lock()
	a.leaving = true
	a.tell()
	a.mu.Unlock()
	done := make(chan struct{})
	go func() {
		a.jobs.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	a.end()
	<-done
	return errors.Join(a.unsubscribe(), a.leave(ctx))
}

// leaveMaxWait is what Stop waits for the directory.
const leaveMaxWait = time.Second

// Stop ends at once. The tasks that are on go to others.
func (a *Agent) Stop() {
	a.mu.Lock()
	a.leaving = true
	a.mu.Unlock()
	a.end()
	a.jobs.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), leaveMaxWait)
	defer cancel()
	if err := errors.Join(a.unsubscribe(), a.leave(ctx)); err != nil {
		a.deps.Logger.Debug().Err(err).Msg("directory entry left to expire")
	}
}

// Failed implements lifecycle.Component.
func (a *Agent) Failed() <-chan error { return nil }

func (a *Agent) unsubscribe() error {
	if a.sub == nil || !a.sub.IsValid() {
		return nil
	}
	return a.sub.Unsubscribe()
}

func (a *Agent) leave(ctx context.Context) error {
	if a.lease == nil {
		return nil
	}
	return a.lease.Leave(ctx)
}

// tell tells the directory whether the agent takes tasks, if that has changed. mu is held.
func (a *Agent) tell() {
	status := cmd.StatusActive
	switch {
	case a.leaving:
		status = cmd.StatusInactive
	case len(a.on) >= a.cfg.Concurrency:
		status = cmd.StatusBusy
	}
	if status == a.status || a.lease == nil {
		return
	}
	data, err := a.says(status)
	if err == nil {
		err = a.lease.Set(data)
	}
	if err != nil {
		a.deps.Logger.Warn().Err(err).Msg("failed to update directory entry")
		return
	}
	a.status = status
}

// Answers to a delivery, as gateways give them.
var (
	confirmed = []byte("+")
	refused   = []byte("-")
)

// direct takes a direct message of the task service. It does not block.
func (a *Agent) direct(m *nats.Msg) {
	answer := confirmed
	if !a.hear(m.Data) {
		answer = refused
	}
	if m.Reply == "" {
		return
	}
	if err := m.Respond(answer); err != nil {
		a.deps.Logger.Debug().Err(err).Msg("failed to confirm direct message")
	}
}

// hear handles a direct message and reports whether the agent has it.
func (a *Agent) hear(raw []byte) bool {
	var e event.Event
	if err := json.Unmarshal(raw, &e); err != nil {
		a.deps.Logger.Warn().Err(err).Msg("direct message dropped: not decodable")
		return false
	}
	log, err := subject.ParseName(e.Subject)
	if err != nil {
		a.deps.Logger.Warn().Err(err).Msg("direct message dropped: not about a task")
		return false
	}
	switch e.Type {
	case event.TaskAssigned:
		d, err := event.As[event.TaskAssignedData](e)
		return err == nil && a.accept(log, d)
	case event.TaskMessaged:
		d, err := event.As[event.TaskMessagedData](e)
		j := a.find(log)
		if err == nil && j != nil {
			j.post(d)
		}
		return err == nil && j != nil
	case event.TaskFinished, event.TaskReleased:
		if j := a.find(log); j != nil {
			j.dismiss(e.Type == event.TaskFinished)
		}
	}
	return true
}

func (a *Agent) find(log subject.Log) *job {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.on[log]
}

// accept begins a task, unless the agent has as many as it may.
func (a *Agent) accept(log subject.Log, d event.TaskAssignedData) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.on[log]
	switch {
	case a.leaving:
		return false
	case old != nil && old.task.Attempt >= d.Attempt:
		return true // it is told again
	case old == nil && len(a.on) >= a.cfg.Concurrency:
		return false
	case old != nil:
		old.end()
	}
	j, err := a.newJob(log, d)
	if err != nil {
		a.deps.Logger.Error().Err(err).Str("task", d.TaskID).Msg("failed to accept task")
		return false
	}
	a.on[log] = j
	a.jobs.Go(func() {
		defer a.forget(log, j)
		j.run()
	})
	a.tell()
	return true
}

func (a *Agent) forget(log subject.Log, j *job) {
	j.end()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.on[log] == j {
		delete(a.on, log)
		a.tell()
	}
}
