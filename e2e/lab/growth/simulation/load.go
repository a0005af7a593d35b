package simulation

import "time"

// Load is what users do.
type Load struct {
	Users      int           // with one socket each
	Think      time.Duration // mean time from an answer to the next message
	FirstToken time.Duration // median of the model
	Sigma      float64       // deviation of the logarithm of that time
	Pieces     int           // of a streamed answer
	PieceEvery time.Duration // time between two pieces
	Viewers    int           // further sockets that show each session
	Line       time.Duration // round trip between a user and the gateway
	Remote     float64       // share of the tenants whose users reach another cell's gateway, which proxies
	RemoteLine time.Duration // round trip between these gateways
	Tenants    int
	Skew       float64 // exponent of the Zipf distribution of users over tenants
	Largest    float64 // bound of a tenant's share of the users
}

// answerTime is the mean time that a model takes for an answer.
func (l Load) answerTime() time.Duration { return l.FirstToken + time.Duration(l.Pieces)*l.PieceEvery }

// rate returns the answers a second of so many users, if all answers took the time of the model alone.
func (l Load) rate(users float64) float64 { return users / (l.Think + l.answerTime()).Seconds() }

// Costs are the processor times of an installation's steps, and the waits that need no processor.
type Costs struct {
	GatewayIn  time.Duration // a message: decode, sign, send the command
	GatewayOut time.Duration // an event: decode its announcement, translate and write the frame
	Service    time.Duration // one of the two steps of the services in a run
	Worker     time.Duration // one of the two steps of a worker in a run
	Piece      time.Duration // a piece at the worker
	Watch      time.Duration // the same at the services, on which no answer waits
	Append     time.Duration // a message of a stream and its announcement, at the leader
	Follow     time.Duration // the same at a follower
	Serial     time.Duration // the part of Append that a shard does for one message after the other
	Commit     time.Duration // the wait for followers and disk
	Beside     time.Duration // work of NATS for a run on which no answer waits: deliveries, acknowledgements, reads
}

// Shape is the size of a cell. All nodes of a part have the same number of cores.
type Shape struct {
	Gateways, GatewayCores int
	Services, ServiceCores int
	Workers, WorkerCores   int
	NATS, NATSCores        int
	Jobs                   int // that a worker does at once
	Copies                 int // of each stream
	Shards                 int
	Linger                 time.Duration // for which a piece waits for others before it is appended
	Together               int           // cores that all parts share in one process; 0 = nodes of their own
}

// Config is all that a run depends on.
type Config struct {
	Seed    uint64
	Cells   int
	Load    Load
	Costs   Costs
	Shape   Shape
	Warm    time.Duration // before the statistics begin
	Length  time.Duration // of the statistics
	Losses  []Loss
	Moves   []Move
	Assign  []int // the cell of each tenant; nil = the cell with the fewest users, the largest tenant first
	MaxAsks int   // messages of each user; 0 = any
}

// Loss is the end of a cell, and the time at which it is back; 0 = never.
type Loss struct {
	Cell     int
	At, Back time.Duration
}

// Move takes a tenant to another cell. Its messages wait while its logs are copied.
type Move struct {
	Tenant, To int
	At, Copy   time.Duration
}
