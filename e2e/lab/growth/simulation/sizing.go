package simulation

import (
	"math"
	"time"
)

// Demand is the cores that a load keeps busy in each part, and what it writes and sends.
type Demand struct {
	Users                            int
	Rate                             float64 // answers a second
	Gateway, Services, Workers, NATS float64 // cores
	Running                          float64 // answers in progress
	Appends                          float64 // messages of streams a second
	Stored                           float64 // bytes a second, one copy
	Sent                             float64 // bytes a second
}

// pieces returns how many appends the pieces of an answer are, if each waits for others.
func (f Figures) pieces(linger time.Duration) float64 {
	gathered := 1 + float64(linger)/float64(milliseconds(f.PieceEvery))
	return 1 + (f.Pieces.Value-1)/gathered
}

// DemandOf returns the demand of so many users, with so many copies of streams.
func (f Figures) DemandOf(users, copies int, linger time.Duration) Demand {
	l := f.LoadOf(users)
	rate := l.rate(float64(users))
	more := f.pieces(linger) - 1
	nats, piece := f.NATSRun, f.NATSPiece
	if copies > 1 {
		nats, piece = f.NATSRun3, f.NATSPiece3
	}
	cores := func(run, piece Figure) float64 { return rate * (run.time().Seconds() + more*piece.time().Seconds()) }
	return Demand{
		Users: users, Rate: rate, Gateway: cores(f.GatewayRun, f.GatewayPiece), Services: cores(f.ServiceRun, f.ServicePiece),
		Workers: cores(f.WorkerRun, f.WorkerPiece), NATS: cores(nats, piece), Running: rate * l.answerTime().Seconds(),
		Appends: rate * (storesOfRun + more), Stored: rate * (f.StoredRun.Value + more*f.storedPiece(linger)),
		Sent: rate * (f.SentRun.Value + more*f.sentPiece(linger)),
	}
}

// textOfPiece is the bytes of text that a piece adds to another one.
const textOfPiece = 6

func (f Figures) gathered(linger time.Duration) float64 {
	return float64(linger) / float64(milliseconds(f.PieceEvery)) * textOfPiece
}

func (f Figures) storedPiece(linger time.Duration) float64 {
	return f.StoredPiece.Value + f.gathered(linger)
}

func (f Figures) sentPiece(linger time.Duration) float64 {
	return f.SentPiece.Value + f.gathered(linger)
}

// Size is the installation that a load needs.
type Size struct {
	Demand   // of all cells
	Cells    int
	Shape    Shape   // of each cell
	Cores    int     // of all nodes
	Memory   float64 // of a gateway's sockets, GB
	DayGB    float64 // stored a day, all copies
	KeptGB   float64
	StreamGB float64 // that a stream keeps, one copy
	SentGbit float64 // a second
	Month    Money
	Per1000  float64 // price of 1,000 answers, dollars
}

// Money is the price of a month in dollars.
type Money struct{ Cores, Stored, Sent float64 }

// Total is the sum.
func (m Money) Total() float64 { return m.Cores + m.Stored + m.Sent }

const (
	copiesOfStreams = 3
	shards          = 16
	defaultJobs     = 16 // of a worker at once: worker.concurrency
	hoursOfMonth    = 730
	daysOfMonth     = hoursOfMonth / 24.0
	secondsOfDay    = 86400
)

// SizeFor returns the installation for so many users.
func (f Figures) SizeFor(users int, linger time.Duration) Size {
	s := Size{Demand: f.DemandOf(users, copiesOfStreams, linger), Cells: ceil(float64(users) / f.CellUsers.Value)}
	inCell := int(math.Ceil(float64(users) / float64(s.Cells)))
	s.Shape = f.ShapeFor(f.DemandOf(inCell, copiesOfStreams, linger))
	s.Shape.Linger = linger
	p := s.Shape
	s.Cores = s.Cells * (p.Gateways*p.GatewayCores + p.Services*p.ServiceCores + p.Workers*p.WorkerCores + p.NATS*p.NATSCores)
	s.Memory = float64(inCell) / float64(p.Gateways) * f.SocketMemory.Value / 1e6
	day := secondsOfDay * f.DayMean.Value // seconds of the busiest hour in a day
	s.DayGB = s.Stored * copiesOfStreams * day / 1e9
	s.KeptGB = s.DayGB * f.Days.Value
	s.StreamGB = s.KeptGB / copiesOfStreams / float64(s.Cells*shards)
	s.SentGbit = s.Sent * 8 / 1e9
	s.Month = Money{
		float64(s.Cores) * hoursOfMonth * f.CoreHour.Value, s.KeptGB / f.DiskFill.Value * f.StoredGB.Value,
		s.Sent * day * daysOfMonth / 1e9 * f.SentGB.Value,
	}
	s.Per1000 = s.Month.Total() / (s.Rate * day * daysOfMonth) * 1000
	return s
}

// mostCores of a NATS server in this plan.
const mostCores = 16

// ShapeFor returns the nodes for the demand of a cell: every part survives the loss of one.
func (f Figures) ShapeFor(d Demand) Shape {
	cores := int(f.Cores.Value)
	if float64(d.Users) <= f.CellUsers.Value/2 {
		cores /= 2
	}
	nodes := func(busy float64, least int) int { return max(least, ceil(busy/f.Target.Value/float64(cores))) }
	jobs := int(f.Jobs.Value)
	s := Shape{
		GatewayCores: cores, ServiceCores: cores, WorkerCores: cores, NATSCores: cores, Jobs: jobs, Copies: copiesOfStreams, Shards: shards,
		Gateways: max(nodes(d.Gateway, 2), ceil(float64(d.Users)/f.SocketsMost.Value)+1), // when one is lost, the others hold all sockets
		Services: nodes(d.Services, 2),
		Workers:  max(nodes(d.Workers, 2), ceil(d.Running/float64(jobs))+1),
		NATS:     copiesOfStreams,
	}
	for float64(s.NATS*s.NATSCores)*f.Target.Value < d.NATS {
		if s.NATSCores < mostCores {
			s.NATSCores += cores
			continue
		}
		s.NATS++
	}
	return s
}

func ceil(f float64) int { return int(math.Ceil(f - 1e-9)) }
