// Command fill fills a running installation of one process with logs: one long session, and many short ones. They repeat a
// real session of that installation.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/waggle-dev/waggle/e2e/lab/growth"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

type options struct {
	nats, data, learn, long string
	events, sessions, each  int
}

func main() {
	var o options
	flag.StringVar(&o.nats, "nats", "127.0.0.1:4222", "address of the installation's NATS server")
	flag.StringVar(&o.data, "data", "data", "data folder of the installation, which has the key of its session service")
	flag.StringVar(&o.learn, "learn", "", "session whose events are repeated")
	flag.StringVar(&o.long, "long", "long", "id of the long session")
	flag.IntVar(&o.events, "events", 0, "events of the long session at least; 0: it is not made")
	flag.IntVar(&o.sessions, "sessions", 0, "short sessions")
	flag.IntVar(&o.each, "each", 1, "events of each short session at least; it has one repetition of what is learned")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := fill(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "fill:", err)
		os.Exit(1) //nolint:gocritic // the process ends with all that it holds
	}
}

// fill writes all logs.
func fill(ctx context.Context, o options) error {
	role := permission.Session
	conn, err := bus.Connect(ctx, bus.Config{
		URL: "nats://" + o.nats, NKeySeedFile: filepath.Join(o.data, "nats-keys", string(role)+".nk"), InboxPrefix: permission.Inbox(role),
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	s, err := eventlog.New(conn, eventlog.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	t, err := growth.Learn(ctx, s, o.learn)
	if err != nil {
		return err
	}
	if o.events > 0 {
		if err := t.Fill(ctx, s, []string{o.long}, o.events); err != nil {
			return err
		}
	}
	names := make([]string, o.sessions)
	for n := range names {
		names[n] = fmt.Sprintf("short-%05d", n)
	}
	return t.Fill(ctx, s, names, o.each)
}
