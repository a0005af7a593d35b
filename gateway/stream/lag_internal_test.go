package stream

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// lagging is a viewer in a state.
type lagging State

func (l *lagging) State() State { return State(*l) }

func TestALagIsLoggedOnce(t *testing.T) {
	log := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s")}
	var out bytes.Buffer
	logger := zerolog.New(&out)
	said := func() string {
		defer out.Reset()
		return strings.TrimSpace(out.String())
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	v, w := &lagging{Log: log, Position: 3, End: 10}, &Watches{}
	w.Add(v)
	require.Equal(t, []State{State(*v)}, w.States())
	tick := func() string {
		w.Tick(now, logger)
		return said()
	}
	require.Empty(t, tick())

	v.Lag = Lag{Reason: Loading, Since: now}
	require.Empty(t, tick(), "a burst is not worth a line")
	v.Lag = Lag{}
	require.Empty(t, tick())

	v.Lag, v.Waiting = Lag{Reason: QueueFull, Since: now}, 77
	now = now.Add(lagGrace)
	const fields = `"log":"default.session.s","seq":3,"events_behind":7,"bytes_waiting":77,"reason":"queue_full","since":"2026-01-02T03:04:05Z"`
	require.Equal(t, `{"level":"info",`+fields+`,"message":"viewer lags"}`, tick())
	require.Empty(t, tick())
	v.Lag.Since = now // it has caught up for less than a second
	require.Empty(t, tick())

	v.Lag, v.Position, v.Waiting = Lag{}, 10, 0
	require.Contains(t, tick(), `"events_behind":0,"bytes_waiting":0,"reason":"queue_full","since":"2026-01-02T03:04:05Z","message":"viewer caught up"`)
	require.Empty(t, tick())
	w.Remove(v, logger)
	w.Remove(v, logger)
	require.Empty(t, w.States())
	require.Empty(t, said(), "it does not lag")

	w.Add(v)
	v.Lag = Lag{Reason: Expired, Since: now.Add(-time.Hour)}
	require.Contains(t, tick(), `"viewer lags"`)
	w.Remove(v, logger)
	require.Contains(t, said(), `"reason":"expired"`)
	require.Empty(t, tick())
}

func TestAPositionBeyondTheKnownEndIsNotBehind(t *testing.T) {
	require.Zero(t, State{Position: 5, End: 3}.Behind())
	require.EqualValues(t, 2, State{Position: 3, End: 5}.Behind())
}
