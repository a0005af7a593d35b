package command_test

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/internal/lifecycle/lifecycletest"
	"github.com/waggle-dev/waggle/internal/telemetry"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func TestComponentsKeepTheContractOfLifecycle(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	dir, err := directory.Open(maxWait(t), c)
	require.NoError(t, err)
	t.Cleanup(dir.Close)
	for name, fresh := range map[string]func() lifecycle.Component{
		"workers": func() lifecycle.Component {
			return command.NewWorkers(c, command.WorkersConfig{Service: cmd.Worker}, newRecorder(nil).handle)
		},
		"ordered": func() lifecycle.Component {
			return command.NewOrdered(c, dir, command.OrderedConfig{Service: cmd.Session, Instance: id.MustName("a")}, newRecorder(nil).handle)
		},
		"timers": func() lifecycle.Component { return command.NewTimers(c, cmd.Session, log(t), nil) },
	} {
		t.Run(name, func(t *testing.T) { lifecycletest.Exercise(t, fresh) })
	}
	require.NoError(t, c.JS().DeleteStream(maxWait(t), subject.StreamCommands))
	lifecycletest.StartFails(t, func() lifecycle.Component {
		return command.NewWorkers(c, command.WorkersConfig{Service: cmd.Worker}, newRecorder(nil).handle)
	})
	lifecycletest.StartFails(t, func() lifecycle.Component {
		return command.NewOrdered(c, dir, command.OrderedConfig{Service: cmd.Session, Instance: id.MustName("a")}, newRecorder(nil).handle)
	})
}

func TestMetricsSayWhatBecameOfCommands(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	reg := telemetry.NewRegistry()
	r := newRecorder(func(one call) error {
		switch {
		case numberOf(one.Command) == 2:
			return command.Permanent(errBroken)
		case numberOf(one.Command) == 3 && one.Attempt == 1:
			return errBroken
		}
		return nil
	})
	w := workers(t, c, command.WorkersConfig{Registry: reg, Backoff: soon, Concurrency: 1}, r.handle)
	for n := 1; n <= 3; n++ {
		send(t, c, number(t, cmd.Worker, "k", n))
	}
	empty(t, c, subject.StreamCommands)
	require.NoError(t, w.Drain(maxWait(t)))
	telemetry.Lint(t, reg)
	counts := map[string]float64{}
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			switch f.GetName() {
			case "waggle_command_handled_total":
				for _, l := range m.GetLabel() {
					if l.GetName() == "outcome" {
						counts[l.GetValue()] = m.GetCounter().GetValue()
					}
				}
			case "waggle_command_age_seconds":
				counts["aged"] = float64(m.GetHistogram().GetSampleCount())
			case "waggle_command_in_progress":
				counts["on"] = m.GetGauge().GetValue()
			}
		}
	}
	require.Equal(t, map[string]float64{"done": 2, "dead": 1, "retry": 1, "aged": 4, "on": 0}, counts)

	// Another component of the process shares them; a taken name is an error.
	again := command.NewWorkers(c, command.WorkersConfig{Service: cmd.Session, Registry: reg}, r.handle)
	t.Cleanup(again.Stop)
	require.NoError(t, again.Start(maxWait(t)))
	taken := prometheus.NewRegistry()
	taken.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "waggle_command_handled_total", Help: "Other."}))
	require.Error(t, command.NewWorkers(c, command.WorkersConfig{Service: cmd.Worker, Registry: taken}, r.handle).Start(maxWait(t)))
	require.Equal(t, 1, testutil.CollectAndCount(taken), fmt.Sprint("nothing was added to ", taken))
}
