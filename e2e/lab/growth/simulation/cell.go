package simulation

import "time"

// Names of the parts of a cell.
const (
	partGateway = "gateways"
	partService = "services"
	partWorker  = "workers"
	partNATS    = "NATS"
	partShard   = "streams"
	partJobs    = "jobs"
	partProcess = "process"
)

// cell is an installation of its own: gateways, services, workers and NATS servers.
type cell struct {
	e       *engine
	costs   Costs
	shape   Shape
	lost    bool
	epoch   int // grows with each loss
	parts   map[string][]*station
	appends int // messages of streams
	frames  int // sent to users
}

func newCell(e *engine, c Costs, s Shape) *cell {
	out := &cell{e: e, costs: c, shape: s, parts: map[string][]*station{}}
	nodes := func(name string, n, cores int) {
		for range n {
			out.parts[name] = append(out.parts[name], newStation(e, cores))
		}
	}
	if s.Together > 0 {
		nodes(partProcess, 1, s.Together)
		for _, name := range []string{partGateway, partService, partWorker, partNATS} {
			out.parts[name] = out.parts[partProcess]
		}
	} else {
		nodes(partGateway, s.Gateways, s.GatewayCores)
		nodes(partService, s.Services, s.ServiceCores)
		nodes(partWorker, s.Workers, s.WorkerCores)
		nodes(partNATS, s.NATS, s.NATSCores)
	}
	nodes(partShard, s.Shards, 1)
	nodes(partJobs, 1, max(1, s.Workers)*s.Jobs)
	return out
}

// names returns the parts whose stations are all different, in a fixed order.
func (c *cell) names() []string {
	if c.shape.Together > 0 {
		return []string{partProcess, partShard, partJobs}
	}
	return []string{partGateway, partService, partWorker, partNATS, partShard, partJobs}
}

func (c *cell) node(part string, key int) *station { return c.parts[part][key%len(c.parts[part])] }

// idlest returns the node of a part with the least work: workers take jobs from one queue.
func (c *cell) idlest(part string) *station {
	all := c.parts[part]
	best := all[0]
	for _, s := range all[1:] {
		if (s.busy+s.waiting())*best.cores < (best.busy+best.waiting())*s.cores {
			best = s
		}
	}
	return best
}

// store appends a message to a stream: its shard and the leader's cores work, then the followers', and then comes the
// acknowledgement.
func (c *cell) store(r chance, shard int, then func()) {
	c.appends++
	shard %= c.shape.Shards
	c.node(partShard, shard).do(r.exponential(c.costs.Serial), func() {
		leader := shard % len(c.parts[partNATS])
		c.node(partNATS, leader).do(r.exponential(c.costs.Append), func() {
			for n := 1; n < c.shape.Copies; n++ {
				c.node(partNATS, leader+n).do(r.exponential(c.costs.Follow), nil)
			}
			c.wait(c.costs.Commit, then)
		})
	})
}

// wait calls the function after a time, unless the cell is lost meanwhile.
func (c *cell) wait(d time.Duration, then func()) {
	epoch := c.epoch
	c.e.after(d, func() {
		if !c.lost && c.epoch == epoch {
			then()
		}
	})
}

func (c *cell) lose() {
	c.lost = true
	c.epoch++
	c.each((*station).lose)
}

func (c *cell) restore() {
	c.lost = false
	c.each((*station).restore)
}

// each visits each station once.
func (c *cell) each(visit func(*station)) {
	for _, name := range c.names() {
		for _, s := range c.parts[name] {
			visit(s)
		}
	}
}
