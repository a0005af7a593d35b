package main

// side is one figure that a benchmark reports.
type side struct{ benchmark, unit string }

// row is a line of the page.
type row struct {
	what  string
	pkg   string // folder of its package, from the project's root
	ours  side
	bare  side   // empty = without a peer
	unit  string // on the page
	scale float64
}

// named returns a row whose benchmark reports both sides.
func named(what, pkg, benchmark, ours, bare, unit string) row {
	r := row{what: what, pkg: pkg, ours: side{benchmark, ours}, unit: unit, scale: 1}
	if bare != "" {
		r.bare = side{benchmark, bare}
	}
	return r
}

// parts returns a row of two parts of a benchmark, which report the same unit.
func parts(what, pkg, benchmark, ours, bare, reported, unit string, scale float64) row {
	return row{what: what, pkg: pkg, ours: side{benchmark + "/" + ours, reported}, bare: side{benchmark + "/" + bare, reported}, unit: unit, scale: scale}
}

// rows is the page. The peer of each kind is explained in intro.
var rows = []row{
	named("an event to each of 1,000 sockets, 20 a second", "gateway", "Overhead/moderate", "gateway-µs/msg", "bare-µs/msg", "µs of CPU a frame"),
	named("as fast as the sockets take them", "gateway", "Overhead/saturated", "gateway-µs/msg", "bare-µs/msg", "µs of CPU a frame"),
	named("a socket, until it is greeted and shows a log", "gateway", "Connect", "gateway-µs/socket", "bare-µs/socket", "µs of CPU"),
	parts("an event to each of 1,000 logs, and its frame to a viewer", "gateway", "Logs", "gateway", "bare", "cpu-µs/event", "µs of CPU", 1),
	parts("as many as two cores do, clients included", "gateway", "Logs", "gateway", "bare", "events/s", "thousands a second", 1e-3),
	named("500 missed events from memory", "gateway", "Replay/500_in_memory", "cpu-ms/replay", "", "ms of CPU"),
	named("99 of 100 within", "gateway", "Replay/500_in_memory", "p99-ms", "", "ms"),
	named("1,000 missed events from the log", "gateway", "Replay/1000_in_the_log", "cpu-ms/replay", "", "ms of CPU"),
	named("99 of 100 within", "gateway", "Replay/1000_in_the_log", "p99-ms", "", "ms"),
	named("an answer of one line, 8 chats", "cmd/waggle", "Run", "cpu-ms/run", "bare-cpu-ms/run", "ms of CPU"),
	named("answers of one line, 8 chats", "cmd/waggle", "Run", "runs/s", "bare-runs/s", "a second"),
	named("first token in an idle installation, half within", "cmd/waggle", "FirstToken", "p50-ms", "", "ms"),
	named("99 of 100 within", "cmd/waggle", "FirstToken", "p99-ms", "", "ms"),
	parts("appends to one log, one after the other", "internal/eventlog", "AppendOneLog", "eventlog", "raw", "events/s", "thousands a second", 1e-3),
	parts("appends to 64 logs at once", "internal/eventlog", "Append64Logs", "eventlog", "raw", "events/s", "thousands a second", 1e-3),
	parts("events of one log to 1,000 viewers in a process", "internal/eventlog", "FanOut", "eventlog", "raw", "deliveries/s", "millions a second", 1e-6),
	parts("events of a log of 1,000 to a viewer, from memory", "internal/eventlog", "Replay", "ring", "raw-ordered-consumer", "events/s", "thousands a second", 1e-3),
	parts("the same from the stream", "internal/eventlog", "Replay", "jetstream", "raw-ordered-consumer", "events/s", "thousands a second", 1e-3),
	named("50 events to each of 1,000 logs at once, whose viewers need 50 µs each, until all have them", "internal/eventlog", "Overload", "late-ms/burst", "", "ms"),
	named("memory of that process, whose rings may take 256 MiB", "internal/eventlog", "Overload", "rss-MiB", "", "MiB"),
}

const intro = `# Speed

Costs of Waggle compared with bare peers, which run in turn with it. ` + "`make speed`" + ` writes this page. For sockets the peer is a hub that
forwards the messages of a subject of NATS to sockets and keeps nothing, for many logs with conditional appends; for answers it
is a client of JetStream that appends the seven events of a run, announces each, and hands over by three commands; for logs it is
NATS itself: conditional appends, a subscription for each viewer, an ordered consumer. Figures are medians, brackets hold the lowest and the highest round. CPU is the
processor time of the gateway or of the installation, with the NATS server in its process.

`
