package simulation

import (
	"slices"
	"time"
)

// Quantiles of a latency.
type Quantiles struct{ P50, P95, P99 time.Duration }

// Use is what a part did. Arrived waits are those of its queues.
type Use struct {
	Part        string
	Nodes       int
	Utilisation float64 // mean of the nodes
	Busiest     float64 // of the nodes
	Present     float64 // mean number of visits, L
	Rate        float64 // visits a second, lambda
	Stay        float64 // mean seconds of a visit, W
	Service     float64 // mean seconds of its service, S
	Longest     int     // queue
}

// Share is what the users of a tenant got.
type Share struct{ Users, Cell, Answered, Failed int }

// Result is what a run shows.
type Result struct {
	Answers, Failed int
	Rate            float64   // answers a second
	First, Whole    Quantiles // from the message to the first token, to the end
	FirstOver       Quantiles // the same without the time of the model
	WholeOver       Quantiles
	Mean            time.Duration // of Whole
	Waiting         float64       // mean number of users that wait for an answer
	Appends         float64       // a second
	Frames          float64       // a second
	Parts           []Use
	Bottleneck      string
	Tenants         []Share
}

// sample is a latency, and the latency without the model.
type sample struct{ at, took, over time.Duration }

func quantiles(all []sample, of func(sample) time.Duration) Quantiles {
	if len(all) == 0 {
		return Quantiles{}
	}
	sorted := make([]time.Duration, len(all))
	for i, s := range all {
		sorted[i] = of(s)
	}
	slices.Sort(sorted)
	at := func(q float64) time.Duration { return sorted[int(q*float64(len(sorted)-1))] }
	return Quantiles{at(0.5), at(0.95), at(0.99)}
}

func took(s sample) time.Duration { return s.took }
func over(s sample) time.Duration { return s.over }

// useOf sums the stations of a part.
func useOf(name string, all []*station) Use {
	u := Use{Part: name, Nodes: len(all)}
	var stayed, worked time.Duration
	served, length := 0, 0.0
	for _, s := range all {
		share := s.utilisation()
		u.Utilisation += share / float64(len(all))
		u.Busiest = max(u.Busiest, share)
		u.Longest = max(u.Longest, s.longest)
		length = (s.e.now - s.began).Seconds()
		u.Present += s.present.Seconds() / length
		stayed, worked, served = stayed+s.stayed, worked+s.worked, served+s.served
	}
	if served > 0 {
		u.Rate, u.Stay, u.Service = float64(served)/length, stayed.Seconds()/float64(served), worked.Seconds()/float64(served)
	}
	return u
}
