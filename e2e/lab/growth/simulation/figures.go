package simulation

import "time"

// Kinds of figures.
const (
	measured = "measured"
	assumed  = "assumed"
)

// Figure is a number that the simulation uses, with the command that measured it or the reason for it.
type Figure struct {
	Name   string
	Value  float64
	Unit   string
	Kind   string
	Source string
}

func (f Figure) time() time.Duration { return time.Duration(f.Value * float64(time.Microsecond)) }

// Figures are all numbers of the plan.
type Figures struct {
	// Processor time and bytes of an answer of one piece, and of each further piece.
	GatewayRun, GatewayPiece      Figure
	ServiceRun, ServicePiece      Figure
	WorkerRun, WorkerPiece        Figure
	NATSRun, NATSPiece            Figure // one copy
	NATSRun3, NATSPiece3          Figure // three copies, all servers together
	StoredRun, StoredPiece        Figure // one copy
	SentRun, SentPiece            Figure
	SocketMemory, SocketsMost     Figure
	Jobs                          Figure
	Serial, Commit, Failover      Figure
	Messages, Pieces              Figure
	FirstToken, Sigma             Figure
	PieceEvery, Line              Figure
	Target, Cores, CellUsers      Figure
	Days, DiskFill, Skew, Largest Figure
	TenantUsers, CopyRate         Figure
	DayMean                       Figure
	CoreHour, StoredGB, SentGB    Figure
	Tokens                        Figure
}

// PricesOf is the date of the prices.
const PricesOf = "November 2026"

const (
	partsRun  = "`TestParts`"
	partsRun3 = "`TestParts -copies 3`"
)

// Current returns the figures of this version.
func Current() Figures {
	m := func(name string, value float64, unit, source string) Figure {
		return Figure{name, value, unit, measured, source}
	}
	a := func(name string, value float64, unit, reason string) Figure {
		return Figure{name, value, unit, assumed, reason}
	}
	return Figures{
		GatewayRun:   m("gateway", 1100, "µs", partsRun),
		GatewayPiece: m("gateway, a further piece", 130, "µs", partsRun),
		ServiceRun:   m("services", 1600, "µs", partsRun),
		ServicePiece: m("services, a further piece", 25, "µs", partsRun),
		WorkerRun:    m("worker", 2300, "µs", partsRun),
		WorkerPiece:  m("worker, a further piece", 310, "µs", partsRun),
		NATSRun:      m("one NATS server", 2700, "µs", partsRun),
		NATSPiece:    m("NATS, a further piece", 270, "µs", partsRun),
		NATSRun3:     m("three NATS servers, together", 10800, "µs", partsRun3),
		NATSPiece3:   m("three NATS servers, a further piece", 830, "µs", partsRun3),
		StoredRun:    m("stored, one copy", 6700, "B", partsRun),
		StoredPiece:  m("stored, a further piece, one copy", 720, "B", partsRun),
		SentRun:      m("sent in frames", 670, "B", partsRun),
		SentPiece:    m("frames, a further piece", 195, "B", partsRun),

		SocketMemory: m("memory of an idle socket with a log of its own", 13, "kB", "`gateway`: `TestGateIdleSocket`, 9 of heap and 4 of stack"),
		SocketsMost:  m("sockets of a gateway", 10_000, "", "`make attack`; no larger number was tried"),
		Jobs:         a("jobs of a worker at once (`worker.concurrency`)", 256, "", "jobs wait for the model; the default is 16"),
		Serial:       a("part of an append that a stream does alone", 20, "µs", "its leader works on one core; an append with all waits takes 290 µs (`make bench BENCH=AppendOneLog`)"),
		Commit:       a("wait for followers", 2000, "µs", "a round trip between zones of a region, and the followers' work"),
		Failover:     m("a stream without a leader", 7, "s", "`internal/eventlog`: `TestConformanceR3`, 4 to 7 s"),

		Messages:   a("messages of a user", 10, "an hour", "a person who reads each answer"),
		Pieces:     a("pieces of an answer", 300, "", "tokens of a page of text; each is a piece"),
		FirstToken: a("first token of the model, median", 600, "ms", "hosted models answer within a second"),
		Sigma:      a("deviation of its logarithm", 0.5, "", "one in a hundred takes 3 times as long"),
		PieceEvery: a("time between pieces", 30, "ms", "33 tokens a second"),
		Line:       a("round trip of a user to its region", 30, "ms", "a country's network"),

		DayMean:     a("mean of a day, of its busiest hour", 0.4, "", "people sleep; the concurrent users are those of the busiest hour"),
		Target:      a("work of a node's cores", 0.5, "", "the other half carries the load of a lost node"),
		Cores:       a("cores of a node", 4, "", "a usual size"),
		CellUsers:   a("users of a cell", 20_000, "", "see Cells"),
		Days:        a("days that events are kept (`nats.event_max_age`)", 30, "", "the default"),
		DiskFill:    a("use of a disk", 0.7, "", "room for a lost server's return"),
		Skew:        a("exponent of the Zipf distribution of tenants", 1, "", "sizes of organisations follow it"),
		Largest:     a("most users of a tenant, of a cell", 0.5, "", "a larger organisation needs several tenants"),
		TenantUsers: a("users of a tenant, mean", 100, "", "a small company"),
		CopyRate:    a("copy of logs between cells", 50, "MB/s", "half of the speed of a slow disk"),

		CoreHour: a("a core with 4 GB of memory for an hour", 0.04, "$", "of the order of public list prices in "+PricesOf+"; put yours here"),
		StoredGB: a("a GB of disk for a month", 0.10, "$", "the same"),
		SentGB:   a("a GB sent to users", 0.05, "$", "the same, at volume"),
		Tokens:   a("a million tokens of a model", 1, "$", "small hosted models; not in the totals"),
	}
}

// LoadOf returns the load of so many users in a cell.
func (f Figures) LoadOf(users int) Load {
	l := Load{
		Users: users, FirstToken: milliseconds(f.FirstToken), Sigma: f.Sigma.Value, Pieces: int(f.Pieces.Value),
		PieceEvery: milliseconds(f.PieceEvery), Line: milliseconds(f.Line), Tenants: max(1, users/int(f.TenantUsers.Value)),
		Skew: f.Skew.Value, Largest: 1,
	}
	l.Think = time.Duration(float64(time.Hour)/f.Messages.Value) - l.answerTime()
	return l
}

func milliseconds(f Figure) time.Duration { return time.Duration(f.Value * float64(time.Millisecond)) }

// eventsOfRun is how many events an answer of one piece has.
const eventsOfRun = 7

// storesOfRun is how many messages of streams that are: the events and two commands.
const storesOfRun = eventsOfRun + 2

// CostsOf returns the costs of the steps with one or three copies.
func (f Figures) CostsOf(copies int) Costs {
	run, piece := f.NATSRun.time(), f.NATSPiece.time()
	c := Costs{
		GatewayOut: f.GatewayPiece.time(), Service: (f.ServiceRun.time() - f.ServicePiece.time()) / 2, Watch: f.ServicePiece.time(), Worker: (f.WorkerRun.time() - f.WorkerPiece.time()) / 2,
		Piece: f.WorkerPiece.time(), Serial: f.Serial.time(),
	}
	c.GatewayIn = max(0, f.GatewayRun.time()-eventsOfRun*c.GatewayOut)
	c.Append = piece
	if copies > 1 {
		run, piece = f.NATSRun3.time(), f.NATSPiece3.time()
		c.Append, c.Follow = piece/2, piece/2/time.Duration(copies-1) // the leader announces, too
		c.Commit = f.Commit.time()
	}
	c.Beside = max(0, run-storesOfRun*piece)
	return c
}
