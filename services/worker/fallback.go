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

// fallbacks returns the models that may stand in for the worker's in this job, in their order.
func (j *job) fallbacks() []string {
	if a := j.state.Agent; a != nil && a.Model != "" {
		return nil
	}
	m := j.s.deps.Model
	return slices.DeleteFunc(slices.Clone(j.s.cfg.Fallbacks), func(spec string) bool {
		return spec == m.Name() || !model.Serves(m.Name(), model.Providers(m), spec) || !j.s.cfg.Access.MayUse(j.tenant, spec)
	})
}

// next returns the model to ask after a failure of the present one, if another one is left.
func (j *job) next(f *model.Failure) (spec string, ok bool) {
	if !slices.Contains(outages, f.Fault.Code) {
		return "", false
	}
	all := j.fallbacks()
	at := slices.Index(all, j.otherModel()) + 1 // 0: the worker's own model has failed
	if at >= len(all) {
		return "", false
	}
	if at == 0 {
		j.s.avoid.set(j.s.cfg.Now().Add(avoidTime))
	}
	return all[at], true
}

// choose has another model stand in from the beginning where the worker's has failed a moment ago. It returns what people are
// told.
func (j *job) choose() []event.Data {
	w := j.current()
	if w == nil || w.Instead != "" || len(w.Messages) > 0 || j.standIn != "" || !j.s.avoid.at(j.s.cfg.Now()) {
		return nil
	}
	all := j.fallbacks()
	if len(all) == 0 {
		return nil
	}
	out := j.s.deps.Model.Name()
	j.standIn = all[0]
	j.s.deps.Logger.Info().Str("log", j.log.Ref.Name()).Str("job", j.id).Str("model", out).Str("instead", j.standIn).Msg("fallback model selected")
	return []event.Data{event.NoticeData{
		Level: "info", Code: event.ModelInstead, RunID: j.runID,
		Message: fmt.Sprintf("%s is not available at present. %s answers instead.", out, j.standIn),
	}}
}
