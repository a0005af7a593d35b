package worker

import (
	"context"

	"github.com/waggle-dev/waggle/internal/rpc"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model/trial"
)

// trialsAtOnce bounds the trials that a worker makes at once: each costs money.
const trialsAtOnce = 2

// Trials returns a lifecycle component that tries the worker's model when operators ask for it.
func Trials(cfg Config, deps Deps) *rpc.Server {
	cfg = cfg.withDefaults()
	s := rpc.NewServer(deps.Conn, rpc.Config{
		Service: cmd.Worker, Description: "Tries what the model can do", Concurrency: trialsAtOnce, Logger: deps.Logger, Registry: deps.Registry,
	})
	rpc.Handle(s, cmd.TryModel, func(ctx context.Context, in cmd.ModelTrial) (api.ModelTrial, error) {
		if in.Trial < 0 || in.Trial >= trial.Count() {
			return api.ModelTrial{}, fault.New(fault.NotFound)
		}
		r := trial.One(ctx, deps.Model, cfg.Now, in.Trial)
		out := api.ModelTrial{
			Model: deps.Model.Name(), Trial: in.Trial, Of: trial.Count(), Name: r.Name, Grade: string(r.Grade), Is: r.Is, Do: r.Do,
			DurationMS: r.Took.Milliseconds(), Stopped: r.Stopped,
		}
		if r.Usage.Known {
			out.InputTokens, out.OutputTokens = &r.Usage.InputTokens, &r.Usage.OutputTokens
		}
		return out, nil
	})
	return s
}
