package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/process"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/services/checkup"
	"github.com/waggle-dev/waggle/services/status"
)

// onBus checks the bus and the installation behind it.
func onBus(ctx context.Context, p Patient) []Finding {
	const what = "NATS"
	c := p.Config.NATS
	shown := config.RedactURLs(c.URL)
	conn, err := connect(ctx, p)
	if err != nil {
		return one(Fail, what, shown+" cannot be reached", "start it (\"waggle up\" brings its own), or correct --nats, WAGGLE_NATS and the credentials")
	}
	defer conn.Close()
	var refused refusals
	refused.watch(conn)
	info, err := accountInfo(ctx, conn)
	if err != nil {
		return append(mute(shown, err), servers(ctx, p)...)
	}
	out := one(OK, what, fmt.Sprintf("%s, version %s, %d streams, %d MiB stored",
		shown, conn.NATS().ConnectedServerVersion(), info.Streams, info.Store>>20), "")
	out = append(out, servers(ctx, p)...)
	out = append(out, checkup.Streams(ctx, conn, process.Topology(p.Config.Config))...)
	out = append(out, checkup.Copies(ctx, conn)...)
	out = append(out, queues(ctx, conn)...)
	out = append(out, checkup.Letters(ctx, conn, time.Now())...)
	out = append(out, checkup.Clock(ctx, conn)...)
	out = append(out, roles(ctx, conn)...)
	out = append(out, quotas(ctx, p, conn)...)
	return append(out, refused.permissions()...)
}

// connect connects to NATS, with a part of ctx's time as its deadline.
func connect(ctx context.Context, p Patient) (*bus.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	return process.Connect(ctx, p.Config.Config, "waggle/doctor", zerolog.Nop())
}

// accountInfo sends JetStream one request, with a part of ctx's time as its deadline: a cluster without a leader does not
// answer, and the remaining time serves to ask the servers.
func accountInfo(ctx context.Context, conn *bus.Conn) (*jetstream.AccountInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	return conn.JS().AccountInfo(ctx)
}

// mute reports why JetStream does not answer.
func mute(shown string, err error) []Finding {
	const what = "NATS"
	if errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
		return one(Fail, what, shown+" answers, but not JetStream: "+err.Error(), "switch JetStream on (nats-server -js) and let the account use it; "+
			"if it was enabled before, a full disk has disabled it: make room and restart the server")
	}
	return one(Fail, what, shown+" answers, but JetStream does not: "+err.Error(),
		"in a cluster more than half of the servers must be running: start the missing ones (--system-nkey names them); after a failure an election takes up to 9 s")
}

func roles(ctx context.Context, conn *bus.Conn) []Finding {
	const what = "roles"
	d, err := directory.Open(ctx, conn)
	if err != nil {
		return one(Fail, what, "the directory cannot be read: "+err.Error(), "start a role once: it makes what is missing")
	}
	defer d.Close() //nolint:contextcheck // closing takes no context
	return checkup.Roles(status.Read(d, process.Services()))
}

// queues counts the waiting commands of each service.
func queues(ctx context.Context, conn *bus.Conn) []Finding {
	depths, err := command.Depths(ctx, conn)
	if err != nil {
		return one(Warn, "queues", "the queues cannot be measured: "+err.Error(), "see the finding about permissions")
	}
	waiting := map[string]uint64{}
	for service, d := range depths {
		waiting[service] = d.Pending
	}
	return checkup.Queues(waiting)
}
