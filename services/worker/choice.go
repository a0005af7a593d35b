package worker

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
)

// avoidTime is how long a model is not asked first after it has failed and another one has stood in for it.
const avoidTime = time.Minute

// avoided is when a worker asks its model first again. It is safe for concurrent use.
type avoided struct{ until atomic.Int64 }

func (a *avoided) set(until time.Time) { a.until.Store(until.UnixNano()) }

func (a *avoided) at(now time.Time) bool { return now.UnixNano() < a.until.Load() }

// outages are the failures after which another model is asked.
var outages = []fault.Code{fault.ModelBusy, fault.ModelRateLimited, fault.ModelFailed, fault.ModelTimeout, fault.ModelOutOfQuota}

// choice is the model that an attempt asks.
type choice struct {
	*attempt

	standIn string // the model that is asked from the beginning, in place of one that has failed
}

// spec is the model that replaces the worker's: that of a member's definition, or the one that stands in for it.
func (c *choice) spec() string {
	if c.state.Agent != nil && c.state.Agent.Model != "" {
		return c.state.Agent.Model
	}
	if w := c.current(); w != nil && w.Instead != "" {
		return w.Instead
	}
	return c.standIn
}

// name is the specification of the model that is asked.
func (c *choice) name() string { return model.Asked(c.s.deps.Model, c.spec()) }

// fallbacks returns the models that may stand in for the worker's in this job, in their order.
func (c *choice) fallbacks() []string {
	if a := c.state.Agent; a != nil && a.Model != "" {
		return nil
	}
	m := c.s.deps.Model
	return slices.DeleteFunc(slices.Clone(c.s.cfg.Fallbacks), func(spec string) bool {
		return spec == m.Name() || !model.Serves(m.Name(), model.Providers(m), spec) || !c.s.cfg.Access.MayUse(c.tenant, spec)
	})
}

// next returns the model to ask after a failure of the present one, if another one is left.
func (c *choice) next(f *model.Failure) (spec string, ok bool) {
	if !slices.Contains(outages, f.Fault.Code) {
		return "", false
	}
	all := c.fallbacks()
	at := slices.Index(all, c.spec()) + 1 // 0: the worker's own model has failed
	if at >= len(all) {
		return "", false
	}
	if at == 0 {
		c.s.avoid.set(c.s.cfg.Now().Add(avoidTime))
	}
	return all[at], true
}

// avoidFailed has another model stand in from the beginning where the worker's has failed a moment ago. It returns what people are
// told.
func (c *choice) avoidFailed() []event.Data {
	w := c.current()
	if w == nil || w.Instead != "" || len(w.Messages) > 0 || c.standIn != "" || !c.s.avoid.at(c.s.cfg.Now()) {
		return nil
	}
	all := c.fallbacks()
	if len(all) == 0 {
		return nil
	}
	out := c.s.deps.Model.Name()
	c.standIn = all[0]
	c.s.deps.Logger.Info().Str("log", c.log.Ref.Name()).Str("job", c.id).Str("model", out).Str("instead", c.standIn).Msg("fallback model selected")
	return []event.Data{event.NoticeData{
		Level: "info", Code: event.ModelInstead, RunID: c.runID,
		Message: fmt.Sprintf("%s is not available at present. %s answers instead.", out, c.standIn),
	}}
}
