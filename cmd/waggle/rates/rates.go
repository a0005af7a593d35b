// Package rates keeps the metrics of each process for a quarter of an hour and reports how often things happened in all of them, and
// how long they took. The processes ask each other over the bus.
package rates

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/waggle-dev/waggle/internal/bus"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// request is the subject on which every process answers.
var request = subject.RPC(cmd.Process, cmd.ListRates)

// sample is the sum of all series of each source at one time.
type sample struct {
	at  time.Time
	sum map[string]count
}

type count struct {
	all     float64
	buckets map[float64]float64 // observations up to the bound; nil: nothing is measured
}

// Rates has the samples of this process, and tells them to the gateways that ask. It is a lifecycle component and safe for
// concurrent use.
type Rates struct {
	conn *bus.Conn
	from prometheus.Gatherer
	now  func() time.Time

	kill context.Context //nolint:containedctx // ends at Stop
	stop context.CancelFunc
	loop sync.WaitGroup

	mu  sync.Mutex
	all []sample           // oldest first
	sub *nats.Subscription // nil: not started
}

// New returns the rates of a process whose metrics are in the gatherer, not started. The connection must outlive them.
func New(conn *bus.Conn, from prometheus.Gatherer) *Rates {
	r := &Rates{conn: conn, from: from, now: time.Now}
	r.kill, r.stop = context.WithCancel(context.Background())
	return r
}

// Name implements lifecycle.Component.
func (*Rates) Name() string { return "rates" }

// Start takes the first sample and begins to answer.
func (r *Rates) Start(ctx context.Context) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.take()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sub != nil || r.kill.Err() != nil {
		return errors.New("start the rates: they have been started or stopped before")
	}
	if r.sub, err = r.conn.NATS().Subscribe(request, r.answer); err != nil {
		return fmt.Errorf("offer the rates on the bus: %w", err)
	}
	r.loop.Go(r.run)
	return nil
}

func (r *Rates) run() {
	t := time.NewTicker(Every)
	defer t.Stop()
	for {
		select {
		case <-r.kill.Done():
			return
		case <-t.C:
			r.take()
		}
	}
}

// Drain implements lifecycle.Component: what still works is counted until Stop.
func (*Rates) Drain(context.Context) error { return nil }

// Stop ends the samples and the answers.
func (r *Rates) Stop() {
	r.stop()
	r.mu.Lock()
	if r.sub != nil {
		_ = r.sub.Unsubscribe() // fails after an earlier Stop, or if the connection is closed, which ends the subscription, too
	}
	r.mu.Unlock()
	r.loop.Wait()
}

// Failed implements lifecycle.Component: rates end only on request.
func (*Rates) Failed() <-chan error { return nil }

// answer sends the window of this process.
func (r *Rates) answer(m *nats.Msg) {
	body, err := json.Marshal(r.window())
	if err == nil {
		err = m.Respond(body)
	}
	if err != nil {
		r.conn.Logger().Debug().Err(err).Msg("failed to send rates")
	}
}

// take takes a sample. A metric that cannot be read now is missing from it.
func (r *Rates) take() {
	s := sample{at: r.now(), sum: map[string]count{}}
	families, _ := r.from.Gather() // an error leaves the other metrics
	for _, f := range families {
		for _, source := range sources {
			if source.metric == f.GetName() {
				s.sum[source.name] = sumOf(f, source)
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, s)
	if n := len(r.all) - kept - 1; n > 0 {
		r.all = slices.Delete(r.all, 0, n)
	}
}

func sumOf(f *dto.MetricFamily, of source) count {
	var out count
	for _, m := range f.GetMetric() {
		if !of.counts(m.GetLabel()) {
			continue
		}
		h := m.GetHistogram()
		if h == nil {
			out.all += m.GetCounter().GetValue() * cmp.Or(of.scale, 1)
			continue
		}
		if out.buckets == nil {
			out.buckets = map[float64]float64{}
		}
		out.all += float64(h.GetSampleCount())
		for _, b := range h.GetBucket() {
			out.buckets[b.GetUpperBound()] += float64(b.GetCumulativeCount())
		}
	}
	return out
}

// window returns what the process has counted. Metrics of roles that other processes have are missing from it.
func (r *Rates) window() window {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := window{Instance: r.conn.Instance(), Series: map[string]series{}}
	n := len(r.all)
	if n == 0 {
		return w
	}
	first, last := r.all[0], r.all[n-1]
	w.at = last.at
	for i := 1; i < n; i++ {
		w.Took = append(w.Took, max(0, r.all[i].at.Sub(r.all[i-1].at).Seconds()))
	}
	for name, now := range last.sum {
		s := series{Counts: make([]float64, n-1)}
		for i := range s.Counts {
			s.Counts[i] = max(0, r.all[i+1].sum[name].all-r.all[i].sum[name].all)
		}
		s.Bounds, s.Within = within(first.sum[name], now)
		for to := n - 1; to > 0 && len(s.Bounds) > 0; to -= recent {
			s.Parts = append(s.Parts, partOf(s.Bounds, r.all[max(0, to-recent)].sum[name], r.all[to].sum[name]))
		}
		slices.Reverse(s.Parts)
		w.Series[name] = s
	}
	return w
}

// partOf returns how much each bucket has got between two samples.
func partOf(bounds []float64, a, b count) []float64 {
	in, below := make([]float64, len(bounds)), 0.0
	for i, bound := range bounds {
		upTo := b.buckets[bound] - a.buckets[bound]
		in[i], below = max(0, upTo-below), upTo
	}
	return in
}

// within returns the bounds of the buckets, and how much each of them has got between two samples.
func within(a, b count) (bounds, in []float64) {
	for _, bound := range slices.Sorted(maps.Keys(b.buckets)) {
		if !math.IsInf(bound, 1) {
			bounds = append(bounds, bound)
		}
	}
	if bounds == nil {
		return nil, nil
	}
	return bounds, partOf(bounds, a, b)
}
