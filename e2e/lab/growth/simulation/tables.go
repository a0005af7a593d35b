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

// String returns the value with its unit.
func (f Figure) String() string {
	switch {
	case f.Unit == "$":
		return "$" + strconv.FormatFloat(f.Value, 'f', 2, 64)
	case f.Unit == "µs" && f.Value >= 1000:
		return digits(f.Value/1000) + " ms"
	case f.Unit == "B" || f.Value >= 1000:
		return strings.TrimSpace(short(f.Value) + f.Unit)
	}
	return strings.TrimSpace(strconv.FormatFloat(f.Value, 'f', -1, 64) + " " + f.Unit)
}

func dollars(f float64) string { return "$" + number(f) }

// MeasuredTable lists the measured figures.
func (f Figures) MeasuredTable() string {
	t := newTable("Measured", "An answer of one piece", "A further piece", "Source")
	for _, pair := range [][2]Figure{
		{f.GatewayRun, f.GatewayPiece},
		{f.ServiceRun, f.ServicePiece},
		{f.WorkerRun, f.WorkerPiece},
		{f.NATSRun, f.NATSPiece},
		{f.NATSRun3, f.NATSPiece3},
		{f.StoredRun, f.StoredPiece},
		{f.SentRun, f.SentPiece},
	} {
		t.add(pair[0].Name, pair[0].String(), pair[1].String(), pair[0].Source)
	}
	for _, one := range []Figure{f.SocketMemory, f.SocketsMost, f.Failover} {
		t.add(one.Name, one.String(), "", one.Source)
	}
	return textLast(t)
}

// AssumedTable lists the assumptions.
func (f Figures) AssumedTable() string {
	t := newTable("Assumed", "Value", "Reason")
	for _, one := range []Figure{
		f.Messages, f.Pieces, f.FirstToken, f.Sigma, f.PieceEvery, f.Line, f.DayMean, f.Jobs, f.Serial, f.Commit, f.Target, f.Cores, f.CellUsers,
		f.Days, f.DiskFill, f.Skew, f.Largest, f.TenantUsers, f.CopyRate, f.CoreHour, f.StoredGB, f.SentGB, f.Tokens,
	} {
		t.add(one.Name, one.String(), one.Source)
	}
	return textLast(t)
}

// textLast aligns the last column as text.
func textLast(t *table) string { return strings.Replace(t.String(), "---:|\n", "---|\n", 1) }

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
	t := newTable("Users", "Sockets a gateway of two", "Jobs a worker of two", "Cores of each NATS server", "Busiest stream", "Limits first", "Way out")
	for _, n := range Sizes {
		d := f.DemandOf(n, copiesOfStreams, 0)
		t.add(number(float64(n)), number(float64(n)/2), number(d.Running/2), number(d.NATS/f.Target.Value/copiesOfStreams),
			percent(d.Appends/shards*f.Serial.time().Seconds()), limits[n][0], limits[n][1])
	}
	return strings.Replace(t.String(), "---:|---:|\n", "---|---|\n", 1)
}

// limits are what limits each size, and the way out.
var limits = map[int][2]string{
	1_000:       {"no part: one process dies as a whole", "the fleet"},
	10_000:      {"`worker.concurrency`, by default 16", "raise it; more workers"},
	100_000:     {"NATS servers", "cells"},
	1_000_000:   {"streams, too: each has one leader", "`worker.delta_pause`"},
	10_000_000:  {"money: disks cost more than cores", "keep pieces for a shorter time"},
	100_000_000: {"operations of thousands of cells; models", "automation"},
}

// MoneyTable shows storage, network and money.
func (f Figures) MoneyTable() string {
	t := newTable("Users", "Stored a day", fmt.Sprintf("Kept for %.0f days", f.Days.Value), "Sent", "Cores a month", "Disks a month", "Network a month", "Total a month", "1,000 answers", "Their tokens")
	for _, n := range Sizes {
		s := f.SizeFor(n, 0)
		t.add(number(float64(n)), short(s.DayGB*1e9)+"B", short(s.KeptGB*1e9)+"B", short(s.SentGbit*1e9)+"bit/s", dollars(s.Month.Cores),
			dollars(s.Month.Stored), dollars(s.Month.Sent), dollars(s.Month.Total()), dollars(s.Per1000),
			dollars(f.Pieces.Value*1000/1e6*f.Tokens.Value))
	}
	return t.String()
}

// lingers are the waits of pieces for others that the plan compares.
var lingers = []time.Duration{0, 100 * time.Millisecond, 250 * time.Millisecond}
