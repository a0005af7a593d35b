package simulation

import "time"

// Observation is what one user of a real installation saw, whose parts share the cores of one machine.
type Observation struct {
	CPU     time.Duration // of an answer of one piece: installation and client
	Latency time.Duration // median
	Think   time.Duration
	Cores   int
}

// Model is a simulation of that installation.
type Model struct{ cfg Config }

// Calibrate returns the model whose single user sees what the observed one saw. The figures say how the work divides into steps.
// The rest of the latency is waiting for commits, and the rest of the processor time is work on which no answer waits.
func Calibrate(o Observation) Model {
	f := Current()
	c := f.CostsOf(1)
	m := Model{Config{
		Seed: 1, Load: Load{Users: 1, Think: o.Think, Pieces: 1}, Costs: c.times(float64(o.CPU) / float64(c.path()+c.Watch+c.Beside)),
		Shape: Shape{Together: o.Cores, Jobs: defaultJobs, Copies: 1, Shards: shards}, Warm: 5 * time.Second, Length: 40 * time.Second,
	}}
	if alone := m.Predict(1).Whole.P50; alone < o.Latency {
		m.cfg.Costs.Commit = (o.Latency - alone) / storesOfRun
	} else {
		m.cfg.Costs = m.cfg.Costs.times(float64(o.Latency) / float64(alone))
		m.cfg.Costs.Beside = o.CPU - m.cfg.Costs.path() - m.cfg.Costs.Watch
	}
	return m
}

// path is the processor time of the steps of an answer of one piece for which the answer waits.
func (c Costs) path() time.Duration {
	return c.GatewayIn + eventsOfRun*c.GatewayOut + 2*c.Service + 2*c.Worker + c.Piece + storesOfRun*c.Append
}

func (c Costs) times(n float64) Costs {
	for _, d := range []*time.Duration{&c.GatewayIn, &c.GatewayOut, &c.Service, &c.Worker, &c.Piece, &c.Watch, &c.Append, &c.Follow, &c.Serial, &c.Beside} {
		*d = time.Duration(float64(*d) * n)
	}
	return c
}

// Predict returns what so many users get.
func (m Model) Predict(users int) Result {
	m.cfg.Load.Users = users
	return Run(m.cfg)
}
