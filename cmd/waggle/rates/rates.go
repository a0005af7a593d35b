// Package rates remembers the metrics of this process for a quarter of an hour and tells how often things happened, and how long
// they took.
package rates

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/waggle-dev/waggle/proto-schemas/api"
)

const (
	// Every is the time between two samples.
	Every = 5 * time.Second
	// kept is the number of the differences between samples.
	kept = 180
	// recent is how many of them the present rate is the mean of.
	recent = 12
)

// sources are the metrics of the rates. A histogram counts, and says how long it took.
var sources = []struct{ name, metric string }{
	{"requests", "waggle_gateway_http_requests_total"},
	{"messages", "waggle_gateway_frames_in_total"},
	{"frames", "waggle_gateway_frames_out_total"},
	{"events", "waggle_log_append_seconds"},
	{"deliveries", "waggle_log_delivery_seconds"},
	{"commands", "waggle_command_duration_seconds"},
	{"tools", "waggle_tools_call_seconds"},
	{"models", "waggle_worker_model_first_token_seconds"},
}

// sample is the sum of all series of each source at one time.
type sample struct {
	at  time.Time
	sum map[string]total
}

type total struct {
	count   float64
	buckets map[float64]float64 // observations up to the bound; nil: nothing is measured
}

// Rates has the samples. It is safe for concurrent use.
type Rates struct {
	from prometheus.Gatherer
	now  func() time.Time

	mu  sync.Mutex
	all []sample // oldest first

	done, ended chan struct{}
}

// Start takes samples of the metrics until Close.
func Start(from prometheus.Gatherer) *Rates {
	r := newRates(from, time.Now)
	r.done, r.ended = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(r.ended)
		t := time.NewTicker(Every)
		defer t.Stop()
		for {
			select {
			case <-r.done:
				return
			case <-t.C:
				r.take()
			}
		}
	}()
	return r
}

func newRates(from prometheus.Gatherer, now func() time.Time) *Rates {
	r := &Rates{from: from, now: now}
	r.take()
	return r
}

// Close ends the samples.
func (r *Rates) Close() {
	close(r.done)
	<-r.ended
}

// take takes a sample. A metric that cannot be read now is missing from it.
func (r *Rates) take() {
	s := sample{at: r.now(), sum: map[string]total{}}
	families, _ := r.from.Gather() // an error leaves the other metrics
	for _, f := range families {
		i := slices.IndexFunc(sources, func(x struct{ name, metric string }) bool { return x.metric == f.GetName() })
		if i < 0 {
			continue
		}
		s.sum[sources[i].name] = sumOf(f)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, s)
	if n := len(r.all) - kept - 1; n > 0 {
		r.all = slices.Delete(r.all, 0, n)
	}
}

func sumOf(f *dto.MetricFamily) total {
	var out total
	for _, m := range f.GetMetric() {
		h := m.GetHistogram()
		if h == nil {
			out.count += m.GetCounter().GetValue()
			continue
		}
		if out.buckets == nil {
			out.buckets = map[float64]float64{}
		}
		out.count += float64(h.GetSampleCount())
		for _, b := range h.GetBucket() {
			out.buckets[b.GetUpperBound()] += float64(b.GetCumulativeCount())
		}
	}
	return out
}

// List returns the rates. Those of roles that other processes have are missing.
func (r *Rates) List() api.RateList {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.all[len(r.all)-1]
	out := api.RateList{TakenAt: last.at.UTC(), Seconds: int(Every.Seconds()), Rates: []api.Rate{}}
	for _, s := range sources {
		if now, ok := last.sum[s.name]; ok {
			rate := api.Rate{Name: s.name, Points: r.points(s.name)}
			rate.Recent = r.recent(s.name)
			began := r.all[0].sum[s.name]
			rate.P50, rate.P99 = quantile(0.5, began, now), quantile(0.99, began, now)
			out.Rates = append(out.Rates, rate)
		}
	}
	return out
}

// points returns how often it happened in a second, for each two samples. The caller has locked.
func (r *Rates) points(name string) []float64 {
	out := make([]float64, 0, len(r.all)-1)
	for i := 1; i < len(r.all); i++ {
		out = append(out, perSecond(name, r.all[i-1], r.all[i]))
	}
	return out
}

// recent returns the rate of the newest samples. The caller has locked.
func (r *Rates) recent(name string) float64 {
	n := len(r.all) - 1
	return perSecond(name, r.all[max(0, n-recent)], r.all[n])
}

func perSecond(name string, a, b sample) float64 {
	took := b.at.Sub(a.at).Seconds()
	if took <= 0 {
		return 0
	}
	return round(max(0, b.sum[name].count-a.sum[name].count) / took)
}

// quantile returns the value in milliseconds that the share of what was observed between two samples does not exceed, linear
// within a bucket. 0 = nothing was observed. Values above the last bound count as that bound.
func quantile(share float64, a, b total) float64 {
	bounds := make([]float64, 0, len(b.buckets))
	for bound := range b.buckets {
		if !math.IsInf(bound, 1) {
			bounds = append(bounds, bound)
		}
	}
	slices.Sort(bounds)
	want := share * (b.count - a.count)
	if want <= 0 || len(bounds) == 0 {
		return 0
	}
	low, below := 0.0, 0.0
	for _, bound := range bounds {
		upTo := b.buckets[bound] - a.buckets[bound]
		if upTo >= want {
			return round(1000 * (low + (bound-low)*(want-below)/(upTo-below)))
		}
		low, below = bound, upTo
	}
	return round(1000 * low)
}

// round keeps three digits behind the point: more are noise.
func round(x float64) float64 { return math.Round(x*1000) / 1000 }
