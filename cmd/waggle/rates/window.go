package rates

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

const (
	// Every is the time between two samples.
	Every = 5 * time.Second
	// kept is the number of the differences between samples.
	kept = 180
	// recent is how many of them the present rate is the mean of, and each part of the latencies.
	recent = 12
	// maxParts is the number of these parts: a minute each.
	maxParts = kept / recent
)

// source is the metric of a rate. A histogram counts, and says how long it took.
type source struct {
	name, metric string
	label        string   // of the series that count; empty: all
	values       []string // that it may have
	scale        float64  // 0 = 1
}

var sources = []source{
	{name: "requests", metric: "waggle_gateway_http_requests_total"},
	{name: "messages", metric: "waggle_gateway_frames_in_total"},
	{name: "frames", metric: "waggle_gateway_frames_out_total"},
	{name: "events", metric: "waggle_log_append_seconds"},
	{name: "deliveries", metric: "waggle_log_delivery_seconds"},
	{name: "commands", metric: "waggle_command_duration_seconds"},
	{name: "tools", metric: "waggle_tools_call_seconds"},
	{name: "models", metric: "waggle_worker_model_first_token_seconds"},
	{
		name: "runs", metric: "waggle_log_events_total", label: "type",
		values: []string{string(event.RunCompleted), string(event.RunFailed), string(event.RunCancelled)},
	},
	{name: "failures", metric: "waggle_log_events_total", label: "type", values: []string{string(event.RunFailed)}},
	{name: "tokens", metric: "waggle_worker_tokens_total"},
	{name: "cost", metric: "waggle_worker_cost_dollars_total", scale: 1e6},
}

// counts reports whether a series with the labels is one of the source.
func (s source) counts(labels []*dto.LabelPair) bool {
	return s.label == "" || slices.ContainsFunc(labels, func(l *dto.LabelPair) bool {
		return l.GetName() == s.label && slices.Contains(s.values, l.GetValue())
	})
}

const (
	// maxBounds is the number of buckets that a histogram of an answer may have; ours have at most 20.
	maxBounds = 64
	// maxNumber bounds all numbers of an answer, so that no sum of them overflows.
	maxNumber = 1e15
	// shortest is the time in seconds between two samples below which a rate says nothing.
	shortest = 0.001
)

// window is what a process has counted between its samples, oldest first. Processes send it to each other: some 20 KB of JSON.
type window struct {
	Instance string            `json:"instance"`
	Took     []float64         `json:"took"` // seconds between two samples
	Series   map[string]series `json:"series"`

	at time.Time // of the newest sample
}

// series is what a window has of a source.
type series struct {
	Counts []float64 `json:"counts"`           // between two samples
	Bounds []float64 `json:"bounds,omitempty"` // upper bounds of the buckets of a histogram, in seconds
	Within []float64 `json:"within,omitempty"` // observations of each bucket, in the whole window
	// Parts are the observations of each bucket in each minute, the newest last; nil: an earlier version does not tell.
	Parts [][]float64 `json:"parts,omitempty"`
}

// valid reports whether the numbers are those of a window of n differences.
func (s series) valid(n int) bool {
	odd := func(part []float64) bool { return len(part) != len(s.Bounds) || !plausible(part) }
	return len(s.Counts) == n && len(s.Bounds) <= maxBounds && !odd(s.Within) && plausible(s.Counts) && plausible(s.Bounds) &&
		len(s.Parts) <= maxParts && !slices.ContainsFunc(s.Parts, odd)
}

// decode returns the window of an answer, or the reason why it cannot be one.
func decode(body []byte) (w window, err error) {
	if err := json.Unmarshal(body, &w); err != nil {
		return w, fmt.Errorf("decode rates: %w", err)
	}
	if len(w.Took) > kept || !plausible(w.Took) {
		return w, errors.New("decode rates: invalid times")
	}
	for name, s := range w.Series {
		if !s.valid(len(w.Took)) {
			return w, fmt.Errorf("decode rates: invalid numbers of %.20q", name)
		}
	}
	return w, nil
}

func plausible(numbers []float64) bool {
	return !slices.ContainsFunc(numbers, func(x float64) bool { return x < 0 || x > maxNumber })
}

// sum adds up windows. Their newest points meet, although processes take their samples at different times: a point of the sum
// covers what happened within two intervals.
type sum struct {
	length int // of the longest window
	of     map[string]*figures
}

// figures are the sum of the series of one source.
type figures struct {
	recent float64       // a second
	points [kept]float64 // a second, the newest last
	whole  spread
	parts  []spread // the newest first
}

// spread is how long observations took.
type spread struct {
	count  float64
	within map[float64]float64 // by the upper bound of their bucket
}

func (d *spread) add(count float64, bounds, within []float64) {
	if d.within == nil {
		d.within = map[float64]float64{}
	}
	d.count += count
	for i, bound := range bounds {
		d.within[bound] += within[i]
	}
}

// add adds the window of one more process. It ignores sources that this version does not know.
func (a *sum) add(w window) {
	if a.of == nil {
		a.of = map[string]*figures{}
	}
	a.length = max(a.length, len(w.Took))
	for _, source := range sources {
		s, ok := w.Series[source.name]
		if !ok {
			continue
		}
		f := a.of[source.name]
		if f == nil {
			f = &figures{}
			a.of[source.name] = f
		}
		f.add(s, w.Took)
	}
}

func (f *figures) add(s series, took []float64) {
	n := len(s.Counts)
	for i, c := range s.Counts {
		f.points[kept-n+i] += perSecond(c, took[i])
	}
	newest := max(0, n-recent)
	f.recent += perSecond(total(s.Counts[newest:]), total(took[newest:]))
	f.whole.add(total(s.Counts), s.Bounds, s.Within)
	for back := range s.Parts {
		if len(f.parts) <= back {
			f.parts = append(f.parts, spread{})
		}
		from, to := max(0, n-(back+1)*recent), max(0, n-back*recent)
		f.parts[back].add(total(s.Counts[from:to]), s.Bounds, s.Parts[len(s.Parts)-1-back])
	}
}

// rates returns the rates of all windows together.
func (a *sum) rates() []api.Rate {
	out := []api.Rate{}
	for _, s := range sources {
		f := a.of[s.name]
		if f == nil {
			continue
		}
		r := api.Rate{
			Name: s.name, Recent: round(f.recent), P50: f.whole.quantile(0.5), P99: f.whole.quantile(0.99), Points: make([]float64, a.length),
		}
		for _, part := range slices.Backward(f.parts) {
			r.Minutes = append(r.Minutes, api.RateMinute{P50: part.quantile(0.5), P99: part.quantile(0.99)})
		}
		for i, p := range f.points[kept-a.length:] {
			r.Points[i] = round(p)
		}
		out = append(out, r)
	}
	return out
}

// quantile returns the value in milliseconds that the share of the observations does not exceed, linear within a bucket. 0 = nothing
// was observed. Values above the last bound count as that bound.
func (d spread) quantile(share float64) float64 {
	want, low, below := share*d.count, 0.0, 0.0
	if want <= 0 {
		return 0
	}
	for _, bound := range slices.Sorted(maps.Keys(d.within)) {
		here := d.within[bound]
		if below+here >= want {
			return round(1000 * (low + (bound-low)*(want-below)/here))
		}
		low, below = bound, below+here
	}
	return round(1000 * low)
}

func perSecond(count, took float64) float64 {
	if took < shortest {
		return 0
	}
	return count / took
}

func total(numbers []float64) (out float64) {
	for _, x := range numbers {
		out += x
	}
	return out
}

// round keeps three decimal places: more are noise.
func round(x float64) float64 { return math.Round(x*1000) / 1000 }
