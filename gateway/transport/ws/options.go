package ws

import (
	"runtime"
	"time"
)

// Options of a Hub. A zero field takes its default.
type Options struct {
	Shards         int           // writer goroutines; 2 x GOMAXPROCS
	QueueBytes     int           // bytes that may wait for one socket; 1 MiB
	ReadLimit      int64         // bytes of one message from the peer, unless its socket has other Limits; 256 KiB
	LargeMessages  int           // messages beyond ReadLimit that are read or kept at once, of all sockets; 32
	PingInterval   time.Duration // between pings; 25 s, below the idle limits of common proxies (60 s)
	PongTimeout    time.Duration // without any sign of life after a ping; 10 s
	MessageTimeout time.Duration // from a message's first byte to its last, and for each ReadLimit bytes of a larger one; 15 s
	WriteStall     time.Duration // without a byte accepted while something waits; 30 s
	CloseTimeout   time.Duration // for each half of the close handshake: to write what waits, and to hear the answer; 5 s
}

const (
	// coalesce is what one write joins: at 300-byte frames a thousand missed
	// messages leave in ten writes, and more gains nothing.
	coalesce = 32 << 10
	// forceExtra is what Force may add beyond QueueBytes: an error frame always
	// has room after a full queue.
	forceExtra = 64 << 10
	// maxControlQueue bounds the pongs that wait for a slow peer. Beyond it only
	// the latest is answered, which RFC 6455 (section 5.5.3) allows.
	maxControlQueue = 4 << 10
	// turn is how many writes a socket gets before its shard continues to the next.
	turn = 8
	// keepFrames is the queue that a socket keeps while it is empty; larger
	// ones, left by a burst, are given back.
	keepFrames = 64
	// readBuffer and writeBuffer of coder's side: most messages of clients fit
	// the first, and its close frames are all that pass the second.
	readBuffer  = 512
	writeBuffer = maxControl + 1
	// messageBuffer is where a message is assembled: most fit, larger ones are
	// allocated on their own.
	messageBuffer = 4 << 10
	// maxLate is how many frames are looked at for the peer's close frame after
	// ours: those that were on their way. Later ones of a peer that keeps sending are not read.
	maxLate = 64
	// piece is what is written at once to a connection that reports progress only
	// by completing a write, as TLS does.
	piece = 4 << 10

	maxTick = time.Second
	minTick = 5 * time.Millisecond
)

func (o Options) withDefaults() Options {
	setDefault(&o.Shards, 2*runtime.GOMAXPROCS(0))
	setDefault(&o.QueueBytes, 1<<20)
	setDefault(&o.ReadLimit, 256<<10)
	setDefault(&o.LargeMessages, 32)
	setDefault(&o.PingInterval, 25*time.Second)
	setDefault(&o.PongTimeout, 10*time.Second)
	setDefault(&o.MessageTimeout, 15*time.Second)
	setDefault(&o.WriteStall, 30*time.Second)
	setDefault(&o.CloseTimeout, 5*time.Second)
	return o
}

func setDefault[T int | int64 | time.Duration](v *T, to T) {
	if *v <= 0 {
		*v = to
	}
}

// tick is the sweeper's interval: a second, less where a timeout is so short that
// a second would be felt.
func (o Options) tick() time.Duration {
	shortest := min(o.PingInterval, o.PongTimeout, o.MessageTimeout, o.WriteStall, o.CloseTimeout)
	return max(minTick, min(maxTick, shortest/4))
}

// Limits bounds the messages of one socket. Zero fields mean Options.ReadLimit.
type Limits struct {
	Message int64 // bytes of a message that Read returns
	Drain   int64 // bytes of a message that Read skips with an Oversize; beyond it the socket ends
}
