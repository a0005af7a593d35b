package stream

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Whatever happens in a log, and however often the workers go and come: a client is told
// in turns that no worker is available and that one is back, the first only while a run
// waits.
func TestNoticesAboutWorkersAlternate(t *testing.T) {
	types := []event.Type{
		event.RunStarted, event.RunCompleted, event.RunFailed, event.RunCancelled, event.InputRequested, event.InputAnswered,
		event.MessageDelta, event.TeamPauseBegun, event.TeamResumed, event.SessionClosed, event.TeamClosed,
	}
	rapid.Check(t, func(t *rapid.T) {
		var s standing
		absent := false
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "event") {
				s.follow(event.Event{Type: rapid.SampledFrom(types).Draw(t, "type")})
				continue
			}
			missing := rapid.Bool().Draw(t, "missing")
			waits := s.waits
			d, due := s.notice(missing)
			if !due {
				require.False(t, missing && waits && !absent, "a run that waits is told of")
				require.False(t, !missing && absent, "who was told hears that one is back")
				continue
			}
			require.True(t, waits || !missing)
			require.Equal(t, missing, d.Code == event.NoWorker)
			require.NotEqual(t, absent, missing)
			absent = missing
		}
	})
}

func TestATeamWaitsWhileItRuns(t *testing.T) {
	var s standing
	for status, want := range map[string]bool{event.TeamRunning: true, "IDLE": false} {
		data, err := json.Marshal(event.TeamStatusData{NewStatus: status})
		require.NoError(t, err)
		s.follow(event.Event{Type: event.TeamStatus, Data: data})
		require.Equal(t, want, s.waits, status)
	}
}
