package worker_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/model/scripted"
	"github.com/waggle-dev/waggle/services/pipeline"
	"github.com/waggle-dev/waggle/services/worker"
)

// soon makes failed requests again without delay.
func soon(c *worker.Config) { c.RetryPause = time.Millisecond }

// TestABrokenAnswerIsAskedForAgain: what was said before the break does not count, and
// the log says why it took longer.
func TestABrokenAnswerIsAskedForAgain(t *testing.T) {
	for name, broken := range map[string]scripted.Step{"cut": scripted.Cut(), "early end": scripted.End()} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, scripted.Sequence(
				scripted.Stream(scripted.Text("half an "), broken), scripted.Fail(http.StatusInternalServerError, "api_error", "oops"),
				scripted.TooMany("0.001"), scripted.Stream(scripted.Text("a whole answer"))))
			r.worker("w1", soon)
			events := r.until(r.ask("hello"), event.RunCompleted, event.RunFailed)
			require.Equal(t, "a whole answer", last[event.RunCompletedData](t, events).Content)
			var codes []string
			discarded := map[string]bool{}
			for _, d := range all[event.MessageDiscardedData](t, events) {
				discarded[d.MessageID] = true
			}
			for i, d := range all[event.RequestFailedData](t, events) {
				codes = append(codes, d.Code)
				require.Equal(t, i+1, d.Try)
				require.Equal(t, 8, d.MaxTries)
				require.Positive(t, d.RetryAfterMS)
				require.True(t, discarded[d.MessageID])
				require.NotEmpty(t, d.Provider.Message, "an operator finds the provider's words")
				require.Equal(t, fault.Lookup(fault.Code(d.Code)).Problem(), d.Message)
			}
			require.Equal(t, []string{"MODEL_CUT_OFF", "MODEL_FAILED", "MODEL_RATE_LIMITED"}, codes)
			require.Equal(t, 4, servicetest.Count(events, event.MessageStarted))
			require.Equal(t, 1, servicetest.Count(events, event.JobStarted), "no other attempt is needed")
		})
	}
}

// TestAProviderThatNeverAnswers: the requests for one message are counted, and the count
// survives nothing but an answer.
func TestAProviderThatNeverAnswers(t *testing.T) {
	r := newRig(t, scripted.Always(scripted.Stream(scripted.Text("half an "), scripted.Cut())))
	r.worker("w1", func(c *worker.Config) { soon(c); c.ModelTries = 3 })
	events := r.until(r.ask("hello"), event.RunFailed)
	require.Equal(t, "MODEL_CUT_OFF", last[event.RunFailedData](t, events).Code)
	require.Len(t, r.llm.Exchanges(), 3)
	require.Equal(t, 2, servicetest.Count(events, event.RequestFailed))
	said := all[event.MessageCompletedData](t, events)[0]
	require.Equal(t, "half an ", said.Content, "what people have read last stays")
	require.Equal(t, event.StopStopped, said.StopReason)
}

// TestAnOutageIsBounded: a job gives up when its time is over before the next request,
// and a run does not begin another attempt at what has failed for so long.
func TestAnOutageIsBounded(t *testing.T) {
	r := newRigWith(t, scripted.Always(scripted.Fail(http.StatusInternalServerError, "api_error", "oops")),
		pipeline.Config{Backoff: time.Hour, MaxWait: time.Minute, Tries: 3, OnBusy: event.OnBusyEnqueue})
	r.worker("w1", func(c *worker.Config) { c.RetryPause, c.RetryTime = time.Hour, 30*time.Minute })
	events := r.until(r.ask("hello"), event.RunFailed)
	require.Equal(t, "MODEL_FAILED", last[event.RunFailedData](t, events).Code)
	events = r.until(r.plan("do something"), event.RunFailed)
	require.Equal(t, "MODEL_FAILED", last[event.RunFailedData](t, events).Code)
	require.Zero(t, servicetest.Count(events, event.RequestFailed))
	require.Zero(t, servicetest.Count(events, event.RetryScheduled))
	require.Len(t, r.llm.Exchanges(), 2)
}

// TestALongWishIsAFailure: a provider that wants to be left alone for longer than people
// wait is not asked again, and a shorter wish is respected.
func TestALongWishIsAFailure(t *testing.T) {
	r := newRig(t, scripted.Sequence(scripted.TooMany("0.3"), scripted.TooMany("3600")))
	r.worker("w1", soon)
	events := r.until(r.ask("hello"), event.RunFailed)
	require.Equal(t, "MODEL_RATE_LIMITED", last[event.RunFailedData](t, events).Code)
	told := all[event.RequestFailedData](t, events)
	require.Len(t, told, 1)
	require.EqualValues(t, 300, told[0].RetryAfterMS)
	x := r.llm.Exchanges()
	require.Len(t, x, 2)
	require.GreaterOrEqual(t, x[1].Arrived.Sub(x[0].Ended()), 300*time.Millisecond-time.Millisecond)
}

// TestCancelEndsAPause: a cancelled run does not wait for its next request, and a worker that takes
// over during a pause keeps to it.
func TestCancelEndsAPause(t *testing.T) {
	r := newRig(t, scripted.Always(scripted.TooMany("28")))
	first, conn := r.worker("w1", hasty)
	run := r.ask("hello")
	r.until(run, event.RequestFailed)
	conn.NATS().Close()
	first.Stop()
	r.worker("w2", hasty)
	r.Until(r.ref, event.JobStarted, 2)
	r.command(cmd.Cancel, "stop", cmd.CancelRun{})
	events := r.until(run, event.RunCancelled)
	require.Len(t, r.llm.Exchanges(), 1, fmt.Sprint(servicetest.Types(events)))
}
