package simulation

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Sizes are the concurrent users of the plan.
var Sizes = []int{1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000}

// table is a Markdown table.
type table struct{ b strings.Builder }

func newTable(columns ...string) *table {
	t := &table{}
	t.add(columns...)
	t.b.WriteString("|---" + strings.Repeat("|---:", len(columns)-1) + "|\n")
	return t
}

func (t *table) add(cells ...string) { t.b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }

func (t *table) String() string { return t.b.String() }

// short writes a number with two digits that count.
func short(f float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e15, " P"}, {1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}} {
		if f >= 0.995*unit.size {
			return digits(f/unit.size) + unit.name
		}
	}
	return digits(f) + " "
}

func digits(f float64) string {
	if f == 0 {
		return "0"
	}
	step := math.Pow(10, math.Floor(math.Log10(math.Abs(f)))-1)
	text := strconv.FormatFloat(math.Round(f/step)*step, 'f', max(0, int(-math.Floor(math.Log10(step)+0.5))), 64)
	return strings.TrimSuffix(text, ".0")
}

func number(f float64) string { return strings.TrimSpace(short(f)) }

func seconds(d time.Duration) string {
	if d >= time.Second {
		return digits(d.Seconds()) + " s"
	}
	return digits(float64(d.Microseconds())/1000) + " ms"
}

func percent(f float64) string {
	if f > 0 && f < 0.01 {
		return "< 1 %"
	}
	return digits(f*100) + " %"
}

func dollars(f float64) string { return "$" + number(f) }

// FigureTable lists the figures with their sources.
func (f Figures) FigureTable(kind string) string {
	t := newTable("Figure", "Value", "Source or reason")
	for _, one := range f.all() {
		if one.Kind != kind {
			continue
		}
		value := strconv.FormatFloat(one.Value, 'f', -1, 64) + " " + one.Unit
		if one.Unit == "$" {
			value = "$" + strconv.FormatFloat(one.Value, 'f', 2, 64)
		}
		t.add(one.Name, strings.TrimSpace(value), one.Source)
	}
	return strings.Replace(t.String(), "|---|---:|---:|", "|---|---:|---|", 1)
}

func (f Figures) all() []Figure {
	return []Figure{
		f.GatewayRun, f.GatewayPiece, f.ServiceRun, f.ServicePiece, f.WorkerRun, f.WorkerPiece, f.NATSRun, f.NATSPiece, f.NATSRun3, f.NATSPiece3,
		f.StoredRun, f.StoredPiece, f.SentRun, f.SentPiece, f.SocketMemory, f.SocketsMost, f.Failover,
		f.Messages, f.Pieces, f.FirstToken, f.Sigma, f.PieceEvery, f.Line, f.DayMean, f.Jobs, f.Serial, f.Commit, f.Target, f.Cores, f.CellUsers, f.Days, f.DiskFill,
		f.Skew, f.Largest, f.TenantUsers, f.CopyRate, f.CoreHour, f.StoredGB, f.SentGB,
	}
}

// NodeTable lists the nodes for each number of users.
func (f Figures) NodeTable() string {
	t := newTable("Users", "Answers a second", "Appends a second", "Cells", "Gateways", "Services", "Workers", "NATS servers", "Cores", "Sockets of a gateway", "Their memory")
	for _, n := range Sizes {
		s := f.SizeFor(n, 0)
		p := s.Shape
		part := func(nodes, cores int) string {
			if s.Cells == 1 {
				return fmt.Sprintf("%d x %d", nodes, cores)
			}
			return fmt.Sprintf("%s x %d x %d", number(float64(s.Cells)), nodes, cores)
		}
		t.add(number(float64(n)), number(s.Rate), number(s.Appends), number(float64(s.Cells)), part(p.Gateways, p.GatewayCores), part(p.Services, p.ServiceCores),
			part(p.Workers, p.WorkerCores), part(p.NATS, p.NATSCores), number(float64(s.Cores)),
			number(float64(n)/float64(s.Cells*p.Gateways)), short(s.Memory*1e9)+"B")
	}
	return t.String()
}

// AloneTable shows what one cell would need for all users.
func (f Figures) AloneTable() string {
	t := newTable("Users", "Sockets a gateway of two", "Jobs a worker of two", "Cores of each NATS server", "Busiest stream", "First limit")
	for _, n := range Sizes {
		d := f.DemandOf(n, copiesOfStreams, 0)
		nats := d.NATS / f.Target.Value / copiesOfStreams
		stream := d.Appends / shards * f.Serial.time().Seconds()
		limit := "none"
		switch {
		case stream > 1:
			limit = "streams"
		case nats > mostCores:
			limit = "NATS servers"
		case float64(n)/2 > f.SocketsMost.Value:
			limit = "sockets: more gateways"
		case d.Running/2 > defaultJobs:
			limit = "`worker.concurrency` at its default"
		}
		t.add(number(float64(n)), number(float64(n)/2), number(d.Running/2), number(nats), percent(stream), limit)
	}
	return strings.Replace(t.String(), "|---:|\n", "|---|\n", 1)
}

// defaultJobs is the default of worker.concurrency.
const defaultJobs = 16

// MoneyTable shows storage, network and money.
func (f Figures) MoneyTable() string {
	t := newTable("Users", "Stored a day", fmt.Sprintf("Kept for %.0f days", f.Days.Value), "Sent", "Cores a month", "Disks a month", "Network a month", "Total a month", "1,000 answers")
	for _, n := range Sizes {
		s := f.SizeFor(n, 0)
		t.add(number(float64(n)), short(s.DayGB*1e9)+"B", short(s.KeptGB*1e9)+"B", short(s.SentGbit*1e9)+"bit/s", dollars(s.Month.Cores),
			dollars(s.Month.Stored), dollars(s.Month.Sent), dollars(s.Month.Total()), dollars(s.Per1000))
	}
	return t.String()
}

// lingers are the waits of pieces for others that the plan compares.
var lingers = []time.Duration{0, 100 * time.Millisecond, 250 * time.Millisecond}
