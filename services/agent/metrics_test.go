package agent

import (
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/services/agent/model"
)

func TestMetricsAreClean(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	m, err := newMetrics(r)
	require.NoError(t, err)
	m.tokens(model.Reply{Model: "demo", Usage: model.Usage{InputTokens: 1, OutputTokens: 2, Known: true}})
	m.attempt(true, nil)
	m.attempt(false, nil)
	m.attempt(false, errors.New("interrupted"))
	telemetry.Lint(t, r)
	families, err := r.Gather()
	require.NoError(t, err)
	require.Len(t, families, 2)
}
