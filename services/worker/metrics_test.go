package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
)

func TestMetricsAreClean(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	m, err := newMetrics(r)
	require.NoError(t, err)
	usd := 0.5
	m.tokens("demo", model.Usage{InputTokens: 9, OutputTokens: 2, Known: true, TokenDetails: event.TokenDetails{CachedTokens: 4, CacheWriteTokens: 3}}, &usd)
	said, ended := m.request("demo")
	said()
	said()
	ended(nil)
	for _, err := range []error{fault.New(fault.ModelBusy), context.Canceled} {
		_, ended := m.request("demo")
		ended(err)
	}
	for i := range 2 * maxNames {
		m.tokens(fmt.Sprint("m", i), model.Usage{InputTokens: 1, Known: true}, nil)
	}
	require.LessOrEqual(t, testutil.CollectAndCount(m.used), maxNames+4, "names of models have a bound")
	m.attempt(true, nil)
	m.attempt(false, nil)
	m.attempt(false, errors.New("interrupted"))
	telemetry.Lint(t, r)
	families, err := r.Gather()
	require.NoError(t, err)
	require.Len(t, families, 5)
	for direction, want := range map[string]float64{"input": 2, "input_cached": 4, "input_cache_write": 3, "output": 2} {
		require.InDelta(t, want, testutil.ToFloat64(m.used.WithLabelValues("demo", direction)), 0, direction)
	}
	require.InDelta(t, 0.5, testutil.ToFloat64(m.cost.WithLabelValues("demo")), 0)
	require.Equal(t, 3, testutil.CollectAndCount(m.asked), "ok, model_busy, stopped")
	require.Equal(t, 1, testutil.CollectAndCount(m.first))
}
