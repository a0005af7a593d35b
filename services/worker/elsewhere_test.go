package worker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/demo"
	"github.com/waggle-dev/waggle/services/model/scripted"
	"github.com/waggle-dev/waggle/services/worker"
)

// TestAModelOfAnotherProvider: a member whose definition names a model is worked for by a
// worker that can ask it, whichever gets the work first; one worker may have several.
func TestAModelOfAnotherProvider(t *testing.T) {
	for name, second := range map[string]func(standard model.Model) model.Model{
		"a worker of its own": func(model.Model) model.Model { return demo.New() },
		"one of several": func(standard model.Model) model.Model {
			s := model.NewSet(standard)
			s.Add(demo.New())
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newMember(t, scripted.Sequence(), func(d *event.MemberCreatedData) { d.Model = "demo" })
			r.worker("w1", nil)
			r.workerOf("w2", second(r.openai()), nil)
			for range 3 {
				events := r.until(r.ask("What is 2 + 2?"), event.RunCompleted)
				require.Zero(t, servicetest.Count(events, event.RunFailed))
				for _, d := range all[event.JobStartedData](t, events) {
					require.Equal(t, []string{"w2", "demo"}, []string{d.Worker, d.Model})
				}
				require.Contains(t, all[event.RunCompletedData](t, events)[0].Content, "4")
			}
			require.Empty(t, r.llm.Exchanges(), "the other model was not asked")
		})
	}
}

// TestAModelWithoutAWorker: what no worker can do fails, and says why.
func TestAModelWithoutAWorker(t *testing.T) {
	r := newMember(t, scripted.Sequence(), func(d *event.MemberCreatedData) { d.Model = "anthropic:claude-x" })
	r.worker("w1", func(c *worker.Config) { c.MaxPasses = 3 })
	events := r.until(r.ask("hello"), event.RunFailed)
	failed := all[event.RunFailedData](t, events)
	require.Len(t, failed, 1)
	require.Equal(t, string(fault.ModelNotFound), failed[0].Code)
	require.Contains(t, failed[0].Message, "anthropic:claude-x")
	require.Empty(t, r.llm.Exchanges())
}
