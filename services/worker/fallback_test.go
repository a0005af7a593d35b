package worker_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/providers"
	"github.com/waggle-dev/waggle/services/model/scripted"
	"github.com/waggle-dev/waggle/services/worker"
)

// both are two providers: the worker's own model, and one that may stand in.
func both(t *testing.T, r *rig) model.Model {
	t.Helper()
	m, err := providers.Open("openai:x", model.Env{}.With("openai", model.Access{BaseURL: r.llm.OpenAIBaseURL()}).
		With("anthropic", model.Access{Key: "k", BaseURL: r.llm.AnthropicBaseURL()}))
	require.NoError(t, err)
	return m
}

func withFallback(c *worker.Config) {
	soon(c)
	c.Fallbacks = []string{"mistral:unserved", "anthropic:y"}
}

// Another provider answers when the model is overloaded, out of order or its account is used up, whatever was said by then.
// The log and people learn it, and it stays for the run.
func TestAnotherModelStandsIn(t *testing.T) {
	for name, failing := range map[string]scripted.Reply{
		"overloaded": scripted.TooMany("3600"), "failing": scripted.Fail(http.StatusBadGateway, "api_error", "oops"),
		"used up":             scripted.Fail(http.StatusPaymentRequired, "insufficient_quota", "pay first"),
		"failing in the text": scripted.Stream(scripted.Text("half an "), scripted.Trouble("api_error", "oops")),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(x *scripted.Exchange) scripted.Reply {
				switch {
				case x.Protocol == scripted.OpenAI:
					return failing
				case x.N == 2:
					return scripted.Stream(scripted.Calls(9, call("workspace_read_file", `{"path":"notes.md"}`)))
				}
				return scripted.Stream(scripted.Text("a whole answer"))
			})
			r.workerOf("w1", both(t, r), withFallback)
			events := r.until(r.ask("hello"), event.RunCompleted, event.RunFailed)
			require.Equal(t, "a whole answer", last[event.RunCompletedData](t, events).Content)
			told := all[event.RequestFailedData](t, events)
			require.Len(t, told, 1)
			require.Equal(t, "anthropic:y", told[0].NextModel)
			require.Zero(t, told[0].RetryAfterMS)
			var asked []string
			for _, d := range all[event.MessageStartedData](t, events) {
				asked = append(asked, d.Model)
			}
			require.Equal(t, []string{"openai:x", "anthropic:y", "anthropic:y"}, asked)
		})
	}
}

// The next run begins with the model that stands in, and says so, until the usual one is tried again a minute later.
func TestAModelThatFailedIsAvoided(t *testing.T) {
	var now clock
	now.set(time.Date(2026, 3, 14, 15, 0, 0, 0, time.UTC))
	r := newRig(t, func(x *scripted.Exchange) scripted.Reply {
		if x.N == 1 {
			return scripted.Fail(http.StatusBadGateway, "api_error", "oops")
		}
		return scripted.Stream(scripted.Text("from " + x.Protocol))
	})
	r.workerOf("w1", both(t, r), func(c *worker.Config) { withFallback(c); c.Now = now.get })
	answer := func(question string) ([]event.Event, string) {
		events := r.until(r.ask(question), event.RunCompleted)
		return events, last[event.RunCompletedData](t, events).Content
	}
	_, text := answer("one")
	require.Equal(t, "from "+scripted.Anthropic, text)
	events, text := answer("two")
	require.Equal(t, "from "+scripted.Anthropic, text)
	notices := all[event.NoticeData](t, events)
	require.Len(t, notices, 1)
	require.Equal(t, event.ModelInstead, notices[0].Code)
	require.Contains(t, notices[0].Message, "openai:x is not available at present. anthropic:y answers instead.")
	now.add(2 * time.Minute)
	_, text = answer("three")
	require.Equal(t, "from "+scripted.OpenAI, text)
}

// After a refusal, which is not an outage, the other model is not asked.
func TestARefusalIsNoOutage(t *testing.T) {
	r := newRig(t, scripted.Always(scripted.Fail(http.StatusUnauthorized, "invalid_api_key", "no")))
	r.workerOf("w1", both(t, r), withFallback)
	r.until(r.ask("hello"), event.RunFailed)
	require.Len(t, r.llm.Exchanges(), 1)
}

// The last model is not asked for ever.
func TestWhenNoneStandsIn(t *testing.T) {
	r := newRig(t, scripted.Always(scripted.Fail(http.StatusBadGateway, "api_error", "oops")))
	r.workerOf("w1", both(t, r), func(c *worker.Config) { withFallback(c); c.ModelTries = 3 })
	events := r.until(r.ask("hello"), event.RunFailed)
	require.Equal(t, "MODEL_FAILED", last[event.RunFailedData](t, events).Code)
	require.Len(t, r.llm.Exchanges(), 3)
}

// clock is a clock that the test sets.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at
}

func (c *clock) add(d time.Duration) { c.set(c.get().Add(d)) }

func (c *clock) get() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}
