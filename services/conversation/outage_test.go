package conversation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/conversation/retry"
)

// TestAnyOutageEnds: whatever a provider does, requests are made again no later than the
// maxWait allows, no earlier than the provider wants, and no more often than the tries;
// an answer begins a new count.
func TestAnyOutageEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		second := func(name string, most int) time.Duration {
			return time.Duration(rapid.IntRange(1, most).Draw(t, name)) * time.Second
		}
		p := retry.MaxWait{Tries: rapid.IntRange(1, 12).Draw(t, "tries"), Pause: time.Second / 2, Job: second("job", 90), Run: second("run", 90)}
		l := &logged{now: time.Date(2026, 3, 14, 0, 0, 0, 0, time.UTC)}
		l.append(t, event.SessionCreatedData{})
		l.append(t, event.MessageReceivedData{MessageID: "m", RunID: "r"})
		l.append(t, event.RunStartedData{RunID: "r", MessageID: "m"})
		var since time.Time
		for tries := 0; ; {
			l.append(t, event.MessageStartedData{RunID: "r", MessageID: "a"})
			if tries == 0 {
				since = l.now
			}
			l.now = l.now.Add(time.Duration(rapid.IntRange(0, 20_000).Draw(t, "took")) * time.Millisecond)
			if rapid.IntRange(0, 9).Draw(t, "answered") == 0 {
				l.append(t, event.MessageCompletedData{RunID: "r", MessageID: "a"})
				require.Zero(t, l.Job("r").Outage)
				tries = 0
				continue
			}
			after := time.Duration(rapid.IntRange(0, 5).Draw(t, "wish")) * time.Second
			pause, ok := l.Retry("r", l.now, after, p)
			if !ok {
				require.True(t, tries+1 >= p.Tries || l.now.Add(max(after, 8800*time.Millisecond)).Sub(since) > min(p.Job, p.Run), "it gave up too early")
				return
			}
			tries++
			require.Less(t, tries, p.Tries)
			require.GreaterOrEqual(t, pause, after)
			require.LessOrEqual(t, l.now.Add(pause).Sub(since), min(p.Job, p.Run))
			l.append(t, event.MessageDiscardedData{RunID: "r", MessageID: "a"})
			l.append(t, event.RequestFailedData{RunID: "r", MessageID: "a", Try: tries, RetryAfterMS: pause.Milliseconds(), Code: "MODEL_FAILED"})
			require.Equal(t, retry.Outage{Since: since, Tries: tries, Next: l.now.Add(pause), Code: "MODEL_FAILED"}, l.Job("r").Outage)
			l.now = l.now.Add(pause)
		}
	})
}

// logged is a state with a clock.
type logged struct {
	conversation.State
	now time.Time
}

func (l *logged) append(t *rapid.T, d event.Data) {
	e, err := event.New(log, "e", "test", l.now, d)
	require.NoError(t, err)
	e.Sequence = l.Seq + 1
	require.NoError(t, l.Apply(e))
}
