package rates

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

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

const (
	// maxBounds is the number of buckets that a histogram of an answer may have; ours have at most 20.
	maxBounds = 64
	// maxNumber bounds all numbers of an answer, so that no sum of them overflows.
	maxNumber = 1e15
	// shortest is the time in seconds between two samples below which a rate says nothing.
	shortest = 0.001
)

// window is what a process has counted between its samples, oldest first. Processes send it to each other: some 15 KB of JSON.
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
		if len(s.Counts) != len(w.Took) || len(s.Bounds) != len(s.Within) || len(s.Bounds) > maxBounds ||
			!plausible(s.Counts) || !plausible(s.Bounds) || !plausible(s.Within) {
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
	count  float64
	within map[float64]float64 // observations, by the upper bound of their bucket
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
			f = &figures{within: map[float64]float64{}}
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
	f.count += total(s.Counts)
	for i, bound := range s.Bounds {
		f.within[bound] += s.Within[i]
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
		r := api.Rate{Name: s.name, Recent: round(f.recent), P50: f.quantile(0.5), P99: f.quantile(0.99), Points: make([]float64, a.length)}
		for i, p := range f.points[kept-a.length:] {
			r.Points[i] = round(p)
		}
		out = append(out, r)
	}
	return out
}

// quantile returns the value in milliseconds that the share of the observations does not exceed, linear within a bucket. 0 = nothing
// was observed. Values above the last bound count as that bound.
func (f *figures) quantile(share float64) float64 {
	want, low, below := share*f.count, 0.0, 0.0
	if want <= 0 {
		return 0
	}
	for _, bound := range slices.Sorted(maps.Keys(f.within)) {
		here := f.within[bound]
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
