package gateway_test

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// worker answers pings until leave is called; pinged gets each of them.
func (r *rig) worker() (pinged chan struct{}, leave func()) {
	r.t.Helper()
	pinged = make(chan struct{}, 100)
	sub, err := r.conn.NATS().Subscribe(subject.RPC(wirecmd.Worker, wirecmd.PingWorker), func(m *nats.Msg) {
		_ = m.Respond(nil)
		pinged <- struct{}{}
	})
	require.NoError(r.t, err)
	require.NoError(r.t, r.conn.NATS().Flush())
	return pinged, func() { _ = sub.Unsubscribe() }
}

// A client whose run waits is told within seconds that no worker is available, however
// long the directory lists the dead one, and again when work continues. Clients without a
// run are not bothered.
func TestClientsAreToldThatNoWorkerIsAvailable(t *testing.T) {
	t.Parallel()
	r := prepare(t, bustest.Single(t))
	r.openDirectory()
	for _, name := range []string{"session", "pipeline", "worker", "tools"} {
		r.join(name)
	}
	pinged, leave := r.worker()
	r.srv = r.server()
	r.serve()
	busy, idle := r.session("default"), r.session("default")
	asks := r.dial("session=" + busy.Entity.String())
	asks.ready()
	looks := r.dial("session=" + idle.Entity.String())
	looks.ready()
	started := event.RunStartedData{RunID: "run_1", ExecutionID: "exec_20260301_120000_000001", MessageID: "m", Content: "hello"}
	require.NoError(t, r.append(busy, "started", started))
	asks.must("user_input")

	<-pinged
	<-pinged // so the gateway has had the answer to the first
	leave()
	require.Equal(t, event.NoWorker, thought(asks))
	_, back := r.worker()
	require.Equal(t, event.WorkerBack, thought(asks))
	require.NoError(t, r.append(busy, "completed", event.RunCompletedData{RunID: "run_1", ExecutionID: started.ExecutionID, Content: "here"}))
	require.Equal(t, "here", asks.must("agent_response").Data.Message)

	// The next run waits for the worker that goes before it; the other client heard nothing.
	back()
	started.RunID = "run_2"
	require.NoError(t, r.append(busy, "again", started))
	asks.must("user_input")
	require.Equal(t, event.NoWorker, thought(asks))
	// The claim of a job proves that a worker runs, before the next ping does.
	require.NoError(t, r.append(busy, "claimed", event.JobStartedData{RunID: "run_2", ExecutionID: started.ExecutionID, Attempt: 1, Worker: "w"}))
	require.Equal(t, event.WorkerBack, thought(asks))
	require.Equal(t, "Processing your request...", asks.must("agent_thinking").Data.Message)
	r.answers(idle, "nothing between")
	require.Equal(t, "nothing between", looks.must("agent_response").Data.Message)
}

// A client that comes back while no worker is available is told, too, if the run that it
// had seen before still waits.
func TestAClientThatComesBackIsToldThatNoWorkerIsAvailable(t *testing.T) {
	t.Parallel()
	r := prepare(t, bustest.Single(t))
	r.openDirectory()
	for _, name := range []string{"session", "pipeline", "worker", "tools"} {
		r.join(name)
	}
	pinged, leave := r.worker()
	r.srv = r.server()
	r.serve()
	busy, idle := r.session("default"), r.session("default")
	started := event.RunStartedData{RunID: "run_1", ExecutionID: "exec_20260301_120000_000001", MessageID: "m", Content: "hello"}
	for _, l := range []subject.Log{busy, idle} {
		require.NoError(t, r.append(l, "started", started))
	}
	require.NoError(t, r.append(idle, "completed", event.RunCompletedData{RunID: "run_1", ExecutionID: started.ExecutionID, Content: "here"}))
	first := r.dial("after=0&session=" + busy.Entity.String())
	first.ready()
	seen := first.must("user_input").Seq
	<-pinged
	<-pinged // so the gateway has had the answer to the first
	leave()
	require.Equal(t, event.NoWorker, thought(first))
	first.leave()

	back := r.dial(fmt.Sprintf("session=%s&after=%d", busy.Entity, seen))
	back.ready()
	end := r.dial("after=0&session=" + idle.Entity.String())
	end.ready()
	end.must("user_input")
	done := end.must("agent_response").Seq
	looks := r.dial(fmt.Sprintf("session=%s&after=%d", idle.Entity, done))
	looks.ready()
	require.Equal(t, event.NoWorker, thought(back))
	r.worker()
	require.Equal(t, event.WorkerBack, thought(back))
	r.answers(idle, "nothing between")
	require.Equal(t, "nothing between", looks.must("agent_response").Data.Message)
}

// thought returns the code of a frame that says something about workers.
func thought(c *client) string {
	c.t.Helper()
	s := c.must("agent_thinking")
	require.Zero(c.t, s.Seq, "it is in no log")
	return s.Data.Code
}
