// Package pipeline is the service of runs. It accepts messages into the log of a session or member,
// lets one run at a time proceed, and leads planned runs through their stages: plan, confirm,
// solve, aggregate. The pure reducer of package conversation decides. The package asks no model and
// runs no tool: it sends jobs to the workers.
package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/waggle-dev/waggle/internal/access"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/conversation/retry"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/ledger/decision"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/plan"
	"github.com/waggle-dev/waggle/services/snapshots"
	"github.com/waggle-dev/waggle/services/tools/schema"
	"github.com/waggle-dev/waggle/services/worker/card"
)

// Defaults of Config.
const (
	// DefaultConfirmTimeout, DefaultTaskTimeout and DefaultConcurrent are what the
	// protocol's examples show.
	DefaultConfirmTimeout = 5 * time.Minute
	DefaultTaskTimeout    = 5 * time.Minute
	DefaultConcurrent     = 10
	// DefaultTries and DefaultBackoff are the protocol's: 2 s, 4 s, three attempts.
	DefaultTries   = 3
	DefaultBackoff = 2 * time.Second
	// replans is how often the planner may try again after an invalid plan.
	replans = 2
)

var dueTimer = id.MustName("due")

// Config holds the settings of the service. Zero values mean the defaults.
type Config struct {
	ConfirmPlan    bool          // ask before a plan is carried out, unless session or message say otherwise
	ConfirmTimeout time.Duration // how long a question stays open
	OnBusy         string        // reject (default), enqueue, interrupt
	MaxConcurrent  int           // tasks of a run at once
	TaskTimeout    time.Duration // of one attempt at a task
	Tries          int           // at a plan, a task or an aggregate
	Backoff        time.Duration // before the second try
	MaxWait        time.Duration // how long the requests of a run to the model may fail one after the other
	AckWait        time.Duration // how long one command may be silent

	Budget  event.Budget            // limits of a run, unless it sets lower ones; zero: unlimited
	Budgets map[string]event.Budget // the same of tenants that have their own, by name
	Access  access.Policy           // to sessions and their questions
	Now     func() time.Time
}

// Rules returns the settings as the reducer takes them.
func (c Config) Rules() conversation.Rules {
	r := conversation.Rules{
		ConfirmPlan: c.ConfirmPlan, ConfirmTimeout: c.ConfirmTimeout, OnBusy: c.OnBusy, MaxConcurrent: c.MaxConcurrent,
		StepTimeout: c.TaskTimeout, Tries: c.Tries, Backoff: c.Backoff, Replans: replans, MaxWait: c.MaxWait,
		Budget: c.Budget, Budgets: c.Budgets, Access: c.Access, Fits: schema.Fits,
	}
	duration := func(v *time.Duration, def time.Duration) {
		if *v <= 0 {
			*v = def
		}
	}
	duration(&r.ConfirmTimeout, DefaultConfirmTimeout)
	duration(&r.StepTimeout, DefaultTaskTimeout)
	duration(&r.Backoff, DefaultBackoff)
	duration(&r.MaxWait, retry.RunMaxWait)
	if r.MaxConcurrent <= 0 {
		r.MaxConcurrent = DefaultConcurrent
	}
	if r.Tries <= 0 {
		r.Tries = DefaultTries
	}
	if r.OnBusy == "" {
		r.OnBusy = event.OnBusyReject
	}
	return r
}

// New returns the service of the runs of sessions. It is not started.
func New(cfg Config, deps ledger.Deps) (*Service, error) {
	return newService(cfg, deps, cmd.Pipeline, id.KindSession)
}

// NewMembers returns the service of the runs of the members of teams. It is not
// started.
func NewMembers(cfg Config, deps ledger.Deps) (*Service, error) {
	return newService(cfg, deps, cmd.Member, id.KindMember)
}

func newService(cfg Config, deps ledger.Deps, name id.Name, kind id.Kind) (*Service, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Service{rules: cfg.Rules(), now: cfg.Now, deps: deps, name: name, kind: kind}
	var err error
	s.Service, err = ledger.NewService(ledger.ServiceConfig[conversation.State, env]{
		Service: name, Kind: kind, Timer: dueTimer, Fired: cmd.CheckDeadlines, AckWait: cfg.AckWait, Now: cfg.Now,
		Fold: (*conversation.State).Apply, Env: s.env, Decide: decide, FollowUp: s.followUp, Own: own(kind),
		Snapshots: snapshots.New(deps.Logger),
	}, deps)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Service) env(_ context.Context, l *ledger.Log[conversation.State], c cmd.Command) (env, error) {
	e := env{now: s.now(), rules: s.rules}
	e.rules.Barred = s.barred(l.State(), c)
	if r := l.State().Active(); r != nil && r.Plan != nil { // the next decision may start its plan
		e.model = card.Model(s.deps.Directory)
	}
	return e, nil
}

// barred returns why the tenant may not use the model that would answer a message, as far as that is certain before a
// worker takes the job. Workers refuse the rest.
func (s *Service) barred(st *conversation.State, c cmd.Command) *fault.Fault {
	if c.Verb != cmd.SendMessage || len(s.rules.Access.Of(c.Tenant).Models) == 0 || st.Swarm() {
		return nil
	}
	var m cmd.UserMessage
	if st.Agent == nil && c.Decode(&m) == nil && m.Agent != "" {
		return nil
	}
	standard, other := card.Model(s.deps.Directory), ""
	if st.Agent != nil {
		other = st.Agent.Model
	}
	if spec := model.Named(standard, other); standard != "" && !s.rules.Access.MayUse(c.Tenant, spec) {
		return model.Barred(spec)
	}
	return nil
}

// own returns how to tell the logs that services may write to in their own name: sessions without a person, and members,
// whose teams send them messages of other members.
func own(kind id.Kind) func(*conversation.State, cmd.Command) bool {
	if kind == id.KindMember {
		return nil
	}
	return (*conversation.State).Unowned
}

// decide asks the reducer, and names the model of a plan.
func decide(st *conversation.State, c cmd.Command, e env) (decision.Decision, error) {
	d, err := st.Decide(c, e.now, e.rules)
	for i, f := range d.Facts {
		if p, ok := f.Data.(event.PlanStartedData); ok {
			p.Model = e.model
			d.Facts[i].Data = p
		}
	}
	return d, err
}

// followUp sends unclaimed jobs, and suspended jobs whose questions are answered, to the workers,
// and sets the timer to the next time at which the log is due.
func (s *Service) followUp(ctx context.Context, l *ledger.Log[conversation.State], c cmd.Command) error {
	for _, w := range l.State().Unclaimed() {
		err := l.Outbox.Once(w.ID, func() error { return s.dispatch(ctx, l, c, w) })
		if err != nil {
			return err
		}
	}
	if err := s.again(ctx, l, c); err != nil {
		return err
	}
	for _, w := range l.State().Ready() {
		err := l.Outbox.Once(w.Resumption(), func() error { return s.send(ctx, c, cmd.Worker, cmd.DoJob, w.Resumption(), s.order(l, w)) })
		if err != nil {
			return err
		}
	}
	for _, w := range l.State().Abandoned() {
		task := w.SwarmTask
		if task == "" {
			task = conversation.SwarmTask(l.Ref, w.ID) // it may wait for its agent
		}
		err := l.Outbox.Once(w.ID+".recall", func() error { return s.recall(ctx, c, w.ID, task) })
		if err != nil {
			return err
		}
	}
	if err := s.recallLate(ctx, l, c); err != nil {
		return err
	}
	if err := s.handOn(ctx, l, c); err != nil {
		return err
	}
	if err := s.wake(ctx, l, c); err != nil {
		return err
	}
	return s.SetTimer(ctx, l, l.State().Due(s.now(), s.rules))
}

// again hands the jobs of a log that came from elsewhere to the workers once more: those
// that have them may be of another installation, or gone with their commands. If one of
// them is here, it keeps its job. Workers pass by what a second work item brings, so this
// is the one after the claim, which they know by its time.
func (s *Service) again(ctx context.Context, l *ledger.Log[conversation.State], c cmd.Command) error {
	if c.Verb != cmd.Resume {
		return nil
	}
	for _, w := range l.State().Claimed() {
		item, err := time.Parse(time.RFC3339Nano, w.Item)
		if err != nil {
			continue // none that a worker would know; its deadline ends it
		}
		data, err := json.Marshal(s.ref(w))
		if err != nil {
			return fmt.Errorf("encode %s: %w", cmd.DoJob, err)
		}
		err = s.Send(ctx, cmd.Command{
			ID: w.ID + "." + c.ID, Service: cmd.Worker, Verb: cmd.DoJob, Tenant: c.Tenant, Key: c.Key, Time: item, Data: data,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// order gives a job of a log to a worker. Its claim fails if the log has gone on in a way that matters.
func (s *Service) order(l *ledger.Log[conversation.State], w *conversation.Job) cmd.JobOrder {
	return cmd.JobOrder{JobRef: s.ref(w), At: l.Cursor().String()}
}

// dispatch sends a job to the workers, or to the swarm if it is for an agent there or
// its task asks for a capability that only an agent there has. Without one, the job has failed.
func (s *Service) dispatch(ctx context.Context, l *ledger.Log[conversation.State], c cmd.Command, w *conversation.Job) error {
	ref := s.ref(w)
	capability := wanted(l.State(), w)
	switch {
	case l.State().InSwarm(l.State().Run(w.RunID)):
		return s.instruct(ctx, l, c, w)
	case capability == "", slices.Contains(card.Capabilities(s.deps.Directory), capability):
		return s.send(ctx, c, cmd.Worker, cmd.DoJob, w.ID, s.order(l, w))
	case s.inSwarm(c.Tenant, capability):
		return s.delegate(ctx, l, c, w)
	}
	return s.send(ctx, c, s.name, cmd.AbandonJob, w.ID+".dead", cmd.AbandonedJob{
		JobRef: ref, Code: string(fault.NoSuchAgent), Reason: "no agent has the capability",
	})
}

// wanted is the capability that the job's task asks for; empty if any worker will do.
func wanted(st *conversation.State, w *conversation.Job) string {
	if w.Part.Stage != event.StageSolving {
		return ""
	}
	task := st.Run(w.RunID).Plan.Step(w.Part.StepID)
	if task == nil || task.State != plan.Running {
		return ""
	}
	return task.Capability
}
