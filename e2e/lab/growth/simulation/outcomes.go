package simulation

import (
	"fmt"
	"time"
)

// seed of all simulations of the plan.
const seed = 20261125

// answersPlayed is about how many answers a simulation of the plan sees, and longest how many seconds it plays for that.
const (
	answersPlayed = 500
	longest       = 60
)

// play simulates a cell of so many users with the nodes that it needs.
func (f Figures) play(inCell int, change func(*Config)) Result {
	c := Config{
		Seed: seed, Load: f.LoadOf(inCell), Costs: f.CostsOf(copiesOfStreams), Shape: f.ShapeFor(f.DemandOf(inCell, copiesOfStreams, 0)),
		Warm: 12 * time.Second, Length: time.Duration(min(longest, max(12, answersPlayed/f.LoadOf(inCell).rate(float64(inCell))))) * time.Second,
	}
	if change != nil {
		change(&c)
	}
	return Run(c)
}

// CellTables show what the users of a cell get, how busy its parts are, and which of them limits it.
func (f Figures) CellTables() string {
	got := newTable("Users of a cell", "Answers a second", "First token, half within", "99 of 100 within", "Without the model", "99 of 100 within")
	columns := []string{partGateway, partService, partWorker, partNATS, partShard, partJobs}
	work := newTable(append(append([]string{"Users of a cell"}, columns...), "Limits first")...)
	for _, n := range []int{1_000, 10_000, int(f.CellUsers.Value)} {
		r := f.play(n, nil)
		got.add(number(float64(n)), number(r.Rate), seconds(r.First.P50), seconds(r.First.P99), seconds(r.FirstOver.P50), seconds(r.FirstOver.P99))
		use := map[string]float64{}
		for _, u := range r.Parts {
			use[u.Part] = u.Utilisation
		}
		row := []string{number(float64(n))}
		for _, part := range columns {
			row = append(row, percent(use[part]))
		}
		work.add(append(row, fmt.Sprintf("%s, at %s users", r.Bottleneck, number(float64(n)/use[r.Bottleneck])))...)
	}
	return got.String() + "\n" + textLast(work)
}

// GatherTable shows what it changes if pieces wait for others.
func (f Figures) GatherTable() string {
	t := newTable("A piece waits", "Appends of an answer", "NATS cores of a cell", "All cores of a cell", "Stored by an answer, one copy", "A stream keeps", "Whole answer, without the model", "1,000 answers")
	const played = 1000
	n := int(f.CellUsers.Value)
	for _, linger := range lingers {
		s := f.SizeFor(n, linger)
		r := f.play(played, func(c *Config) { c.Shape.Linger = linger })
		t.add(seconds(linger), number(s.Appends/s.Rate), fmt.Sprint(s.Shape.NATS*s.Shape.NATSCores), fmt.Sprint(s.Cores), short(s.Stored/s.Rate)+"B", short(s.StreamGB*1e9)+"B",
			seconds(r.WholeOver.P50), dollars(s.Per1000))
	}
	return t.String()
}

// distances are round trips between regions.
var distances = []struct {
	name string
	line time.Duration
}{
	{"the tenant's region", 0},
	{"a neighbouring country", 20 * time.Millisecond},
	{"across the Atlantic", 80 * time.Millisecond},
	{"across the Pacific", 150 * time.Millisecond},
	{"Europe to Australia", 250 * time.Millisecond},
}

// RegionTable shows what users of another region wait.
func (f Figures) RegionTable() string {
	t := newTable("The user is in", "Round trip between the gateways", "First token", "Without the model", "Whole answer")
	for _, d := range distances {
		r := f.play(600, func(c *Config) {
			c.Load.RemoteLine = d.line
			if d.line > 0 {
				c.Load.Remote = 1
			}
		})
		t.add(d.name, seconds(d.line), seconds(r.First.P50), seconds(r.FirstOver.P50), seconds(r.Whole.P50))
	}
	return t.String()
}

// DrillTable shows what is lost with a cell, and what a move costs.
func (f Figures) DrillTable() string {
	const cells, each, lost = 10, 100, 4
	t := newTable("Drill", "Users touched", "Answers failed", "Of other cells", "Slowest answer in a hundred")
	busy := func(c *Config) {
		c.Cells, c.Load.Users, c.Load.Tenants, c.Load.Largest, c.Length = cells, cells*each, cells*3, 1.0/cells, 90*time.Second
	}
	row := func(name string, r Result, is func(tenant int, s Share) bool) {
		touched, failed, others := 0, 0, 0
		for n, s := range r.Tenants {
			if is(n, s) {
				touched += s.Users
				failed += s.Failed
			} else {
				others += s.Failed
			}
		}
		t.add(name, percent(float64(touched)/(cells*each)), fmt.Sprint(failed), fmt.Sprint(others), seconds(r.Whole.P99))
	}
	row("none", f.play(each, busy), func(int, Share) bool { return false })
	row(fmt.Sprintf("one cell of %d is away for 30 s", cells), f.play(each, func(c *Config) {
		busy(c)
		c.Losses = []Loss{{Cell: lost, At: 40 * time.Second, Back: 70 * time.Second}}
	}), func(_ int, s Share) bool { return s.Cell == lost })
	const copied = 1e9 // bytes
	stop := time.Duration(copied / (f.CopyRate.Value * 1e6) * float64(time.Second))
	row(fmt.Sprintf("the largest tenant moves: the copy of 1 GB takes %.0f s, and its messages wait", stop.Seconds()), f.play(each, func(c *Config) {
		busy(c)
		c.Moves = []Move{{Tenant: 0, To: 1, At: 40 * time.Second, Copy: stop}}
	}), func(tenant int, _ Share) bool { return tenant == 0 })
	return t.String()
}
