package conversation

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// However wrong the clocks of the processes are that write a log, the time for which
// workers were busy is counted once: what passes between two events of one clock, and
// nothing for what clocks differ.
func TestTheTimeOfARunIsOfOneClockEach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s")}
		start := time.Date(2026, 3, 1, 23, 58, 0, 0, time.UTC)
		wrong := map[string]time.Duration{}
		for _, clock := range []string{"waggle/pipeline", "w1", "w2"} {
			wrong[clock] = time.Duration(rapid.IntRange(-600, 600).Draw(t, clock)) * time.Second
		}
		var s State
		now, n := time.Duration(0), 0
		add := func(source, clock string, d event.Data) {
			n++
			e, err := event.New(log, fmt.Sprint("e", n), source, start.Add(now+wrong[clock]), d)
			require.NoError(t, err)
			e.Sequence = uint64(n)
			require.NoError(t, s.Apply(e))
		}
		service := func(d event.Data) { add("waggle/pipeline", "waggle/pipeline", d) }
		service(event.SessionCreatedData{Dialect: "orbit"})
		service(event.MessageReceivedData{MessageID: "m", RunID: "r", Content: "do"})
		service(event.RunStartedData{RunID: "r", MessageID: "m", Content: "do", Budget: &event.Budget{Seconds: 60}})
		for attempt, worker := range []string{"w1", "w2"} {
			now += time.Minute // time without a worker
			turn := func(d event.Data) { add("waggle/worker", worker, d) }
			before := s.Run("r").Worked()
			turn(event.JobStartedData{RunID: "r", Attempt: attempt + 1, Worker: worker})
			require.Equal(t, before, s.Run("r").Worked(), "a worker that takes it up has not worked yet")
			busy := time.Duration(0)
			for range rapid.IntRange(1, 8).Draw(t, "events") {
				d := time.Duration(rapid.IntRange(0, 5000).Draw(t, "ms")) * time.Millisecond
				now, busy = now+d, busy+d
				if rapid.Bool().Draw(t, "by the service") {
					service(event.NoticeData{Level: "info", Code: "X", Message: "x"})
					continue
				}
				turn(event.MessageDeltaData{RunID: "r", MessageID: "m1", Attempt: attempt + 1, Text: "x"})
			}
			turn(event.JobSuspendedData{RunID: "r", Attempt: attempt + 1, Inputs: []string{"i"}})
			require.Equal(t, before+busy, s.Run("r").Worked())
		}
	})
}
