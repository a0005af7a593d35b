package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/process"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
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
	out = append(out, streams(ctx, p, conn)...)
	out = append(out, copies(ctx, conn)...)
	out = append(out, queues(ctx, conn)...)
	out = append(out, letters(ctx, conn, time.Now())...)
	out = append(out, clock(ctx, conn)...)
	out = append(out, roles(ctx, conn)...)
	out = append(out, quotas(ctx, p, conn)...)
	return append(out, refused.permissions()...)
}

// connect connects to NATS, with a part of ctx's time as its deadline.
func connect(ctx context.Context, p Patient) (*bus.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return process.Connect(ctx, p.Config.Config, "waggle/doctor", zerolog.Nop())
}

// accountInfo sends JetStream one request, with a part of ctx's time as its deadline: a cluster without a leader does not
// answer, and the remaining time serves to ask the servers.
func accountInfo(ctx context.Context, conn *bus.Conn) (*jetstream.AccountInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
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
		"in a cluster more than half of the servers have to be there: bring the missing ones back (--system-nkey names them); after a failure an election takes up to 9 s")
}

func streams(ctx context.Context, p Patient, conn *bus.Conn) []Finding {
	const what = "streams"
	drift, err := bus.Verify(ctx, conn, process.Topology(p.Config.Config))
	if err != nil {
		return one(Fail, what, err.Error(), "start a role once: it makes what is missing")
	}
	if len(drift) == 0 {
		return one(OK, what, "as the code wants them", "")
	}
	if !slices.ContainsFunc(drift, func(d bus.Drift) bool { return !d.Audit || d.Field == "stream" }) {
		return one(Warn, what, drift[0].String(), "the audit log keeps its limits until you change them: \"waggle bootstrap --change-audit-retention\" "+
			"with the key of the user retention")
	}
	lines := make([]string, len(drift))
	for i, d := range drift {
		lines[i] = d.String()
	}
	return one(Fail, what, strings.Join(lines, "\n"), "start a role once: it makes what is missing and mends what can be mended; "+
		"if it refuses, the stream has to be copied into a new one")
}

func clock(ctx context.Context, conn *bus.Conn) []Finding {
	before := time.Now()
	s, err := conn.JS().Stream(ctx, subject.Partition(0).EventStream())
	if err != nil {
		return nil // the finding about streams reports it
	}
	after := time.Now()
	half := after.Sub(before) / 2
	return skew(s.CachedInfo().TimeStamp.Sub(before.Add(half)), half)
}

func roles(ctx context.Context, conn *bus.Conn) []Finding {
	const what = "roles"
	d, err := directory.Open(ctx, conn)
	if err != nil {
		return one(Fail, what, "the directory cannot be read: "+err.Error(), "start a role once: it makes what is missing")
	}
	defer d.Close() //nolint:contextcheck // closing takes no context
	s := status.Read(d, process.Services())
	return append(replicas(s), append(answering(s), toolServers(s)...)...)
}

// replicas checks that every role has a replica.
func replicas(s api.Status) []Finding {
	const what = "roles"
	var present, missing []string
	for _, r := range s.Services {
		if r.Replicas > 0 {
			present = append(present, fmt.Sprintf("%s %d", r.Name, r.Replicas))
		} else {
			missing = append(missing, r.Name)
		}
	}
	if len(missing) == 0 {
		return one(OK, what, strings.Join(present, ", "), "")
	}
	is := "not running: " + strings.Join(missing, ", ")
	if len(present) > 0 {
		is += "; running: " + strings.Join(present, ", ")
	}
	return one(Warn, what, is, "start them: waggle serve --role "+strings.Join(missing, ","))
}

// answering checks the models of the running workers, independently of this environment.
func answering(s api.Status) []Finding {
	const what = "models"
	if len(s.Models) == 0 {
		return nil // the finding about roles reports it
	}
	var lines, bad []string
	for _, m := range s.Models {
		line := fmt.Sprintf("%s answers, with %d workers", m.Name, m.Workers)
		if m.Workers == 1 {
			line = m.Name + " answers, with 1 worker"
		}
		if m.Trouble != "" {
			line = m.Name + " cannot answer: " + m.Trouble
			bad = append(bad, m.Name)
		}
		lines = append(lines, line)
	}
	if len(bad) > 0 {
		return one(Fail, what, strings.Join(lines, "\n"), "mend what the workers of "+strings.Join(bad, ", ")+
			" say: their network, the key or the base URL; they look again every minute")
	}
	return one(OK, what, strings.Join(lines, "\n"), "")
}

// toolServers checks the connections of the running tool services to their servers.
func toolServers(s api.Status) []Finding {
	const what = "tool servers"
	var up, down []string
	for _, t := range s.ToolServers {
		if t.Down > 0 {
			down = append(down, fmt.Sprintf("%s is down on %d of %d replicas", t.Name, t.Down, t.Replicas))
		} else {
			up = append(up, t.Name)
		}
	}
	switch {
	case len(down) > 0:
		return one(Warn, what, strings.Join(down, "\n"), "see the log of the role tools; correct the server's command or url in tools.servers, or start it")
	case len(up) > 0:
		return one(OK, what, "connected: "+strings.Join(up, ", "), "")
	}
	return nil
}
