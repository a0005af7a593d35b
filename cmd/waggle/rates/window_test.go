package rates

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/proto-schemas/api"
)

// counted is a process with metrics: a counter and a histogram.
type counted struct {
	*Rates
	frames prometheus.Counter
	models *prometheus.HistogramVec
}

func newCounted(conn *bus.Conn) counted {
	c := counted{
		frames: prometheus.NewCounter(prometheus.CounterOpts{Name: "waggle_gateway_frames_in_total"}),
		models: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "waggle_worker_model_first_token_seconds", Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5},
		}, []string{"model"}),
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(c.frames, c.models)
	c.Rates = New(conn, reg)
	return c
}

// The rates of n processes together are those of one process that has seen everything, if they are sampled at the same times.
func TestWindowsOfProcessesAddUp(t *testing.T) {
	conn := bustest.Single(t)
	for seed := range uint64(30) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			one := newCounted(conn)
			parts := make([]counted, 1+random.IntN(6))
			for i := range parts {
				parts[i] = newCounted(conn)
			}
			sample := func() {
				now = now.Add(Every + time.Duration(random.IntN(1000))*time.Millisecond)
				for _, c := range append(parts, one) {
					c.now = func() time.Time { return now }
					c.take()
				}
			}
			sample()
			for range random.IntN(2 * kept) {
				for _, c := range parts {
					n := float64(random.IntN(50))
					c.frames.Add(n)
					one.frames.Add(n)
					for range random.IntN(4) {
						took, model := random.ExpFloat64(), fmt.Sprint("m", random.IntN(2))
						c.models.WithLabelValues(model).Observe(took)
						one.models.WithLabelValues(model).Observe(took)
					}
				}
				sample()
			}
			windows := make([]window, len(parts))
			for i, c := range parts {
				windows[i] = c.window()
			}
			equal(t, together(one.window()), together(windows...))
		})
	}
}

// equal compares rates, which are rounded to thousandths.
func equal(t *testing.T, want, got []api.Rate) {
	t.Helper()
	require.Len(t, got, len(want))
	for i, w := range want {
		g := got[i]
		require.Equal(t, w.Name, g.Name)
		require.InDelta(t, w.Recent, g.Recent, 0.0011, w.Name)
		require.InDelta(t, w.P50, g.P50, 0.0011, w.Name)
		require.InDelta(t, w.P99, g.P99, 0.0011, w.Name)
		require.InDeltaSlice(t, w.Points, g.Points, 0.0011, w.Name)
	}
}

// A process that has just started is in the newest points only.
func TestTheNewestPointsMeet(t *testing.T) {
	of := func(took, counts []float64) window {
		return window{Took: took, Series: map[string]series{"messages": {Counts: counts}}}
	}
	old, young := of([]float64{5, 5, 5}, []float64{50, 60, 70}), of([]float64{2}, []float64{8})
	idle := window{Took: []float64{5, 5}}
	want := []api.Rate{{Name: "messages", Recent: 16, Points: []float64{10, 12, 18}}}
	require.Equal(t, want, together(old, young, idle))
	require.Equal(t, want, together(young, old, idle), "in any order")
	require.Equal(t, []api.Rate{{Name: "messages", Points: []float64{0}}}, together(of([]float64{0}, []float64{9})), "no time has passed")
	require.Empty(t, together(window{Took: []float64{5}, Series: map[string]series{"of a later version": {Counts: []float64{1}}}}))
	require.Empty(t, together(window{}))
}

// Processes of two versions have different buckets.
func TestOtherBuckets(t *testing.T) {
	of := func(bounds, within []float64) window {
		return window{Took: []float64{1}, Series: map[string]series{"models": {Counts: []float64{10}, Bounds: bounds, Within: within}}}
	}
	got := together(of([]float64{1, 2}, []float64{10, 0}), of([]float64{3, 4}, []float64{0, 9}))
	require.Len(t, got, 1)
	require.InDelta(t, 1000, got[0].P50, 0.01)
	require.InDelta(t, 4000, got[0].P99, 0.01, "above the last bound")
}

func TestMalformedWindows(t *testing.T) {
	one := func(s string) string { return `{"instance":"i","took":[5],"series":{"events":` + s + `}}` }
	for _, text := range append([]string{
		"", "x", "[]", `{"took":[-1]}`, `{"took":["1"]}`, `{"took":[1e308]}`, `{"took":[1e999]}`, `{"series":[]}`, `{"took":` + list(kept+1) + `}`,
	}, one(`{}`), one(`{"counts":[1,2]}`), one(`{"counts":[-1]}`), one(`{"counts":[1e300]}`), one(`{"counts":[1],"bounds":[1]}`),
		one(`{"counts":[1],"bounds":[1],"within":[-1]}`), one(`{"counts":[1],"bounds":[-1],"within":[1]}`),
		one(`{"counts":[1],"bounds":`+list(maxBounds+1)+`,"within":`+list(maxBounds+1)+`}`)) {
		_, err := decode([]byte(text))
		require.Error(t, err, "%.80s", text)
	}
	for _, text := range []string{`null`, `{}`, one(`{"counts":[0]}`), one(`{"counts":[3],"bounds":[0,0],"within":[0,0]}`), `{"took":` + list(kept) + `}`} {
		w, err := decode([]byte(text))
		require.NoError(t, err, "%.80s", text)
		together(w, w)
	}
}

func list(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("1,", n), ",") + "]" }

// FuzzWindows: no answer of another process breaks a gateway.
func FuzzWindows(f *testing.F) {
	f.Add([]byte(`{"instance":"i","took":[5,0],"series":{"models":{"counts":[1,2],"bounds":[0.1,0.2],"within":[1,1]}}}`))
	f.Add([]byte(`{"took":[1e15],"series":{"events":{"counts":[1e15],"bounds":[0],"within":[1e15]}}}`))
	f.Add([]byte(`{"took":[5,5],"series":{"models":{"counts":[1,2],"bounds":[0.1],"within":[3],"parts":[[1],[2]]}}}`))
	f.Add([]byte(`{"took":[5],"series":{"models":{"counts":[1],"bounds":[0.1],"within":[3],"parts":[[1,2]]}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		w, err := decode(body)
		if err != nil {
			return
		}
		var all sum
		all.add(w)
		all.add(w)
		_, err = json.Marshal(all.rates())
		require.NoError(t, err)
	})
}

// The answer of a process whose rings are full fits into a message of the bus many times.
func TestAnswersAreSmall(t *testing.T) {
	w := window{Instance: strings.Repeat("i", 36), Series: map[string]series{}}
	for range kept {
		w.Took = append(w.Took, 5.000012345678)
	}
	for _, source := range sources {
		s := series{}
		for range kept {
			s.Counts = append(s.Counts, 123456)
		}
		for i := range 20 {
			s.Bounds, s.Within = append(s.Bounds, 0.00025*float64(i)), append(s.Within, 1e9)
		}
		for range maxParts {
			s.Parts = append(s.Parts, slices.Repeat([]float64{12345}, len(s.Bounds)))
		}
		if !strings.HasSuffix(source.metric, "_seconds") { // not a histogram
			s.Bounds, s.Within, s.Parts = nil, nil, nil
		}
		w.Series[source.name] = s
	}
	body, err := json.Marshal(w)
	require.NoError(t, err)
	require.Less(t, len(body), 32<<10)
	_, err = decode(body)
	require.NoError(t, err)
}
