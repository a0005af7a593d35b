package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/process"
	"github.com/waggle-dev/waggle/cmd/waggle/tail"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

type tailCmd struct {
	fileFlag
	natsFlags
	Target string `arg:"" optional:"" help:"session/ID for a session from its beginning, or a subject such as 'live.>' (everything)." placeholder:"session/ID"`
	Tenant string `help:"Tenant of the session (default \"default\"), or whose events to show." placeholder:"TENANT"`
	After  string `help:"Only events after this seq of the session." placeholder:"SEQ"`
	Follow bool   `negatable:"" default:"true" help:"Follow new events; --no-follow stops at the last one. Without a session, --no-follow shows the newest event of each log."`
	JSON   bool   `name:"json" help:"Print events as JSON, one per line."`
}

// connectMaxWait is how long a tool for people waits for NATS.
const connectMaxWait = 3 * time.Second

// Run implements the command.
func (c *tailCmd) Run(std streams) error {
	l, err := load(c.Config, *c)
	if err != nil {
		return err
	}
	target, err := tail.Parse(c.Target, c.Tenant)
	if err != nil {
		return usageError{err}
	}
	if !c.Follow && c.Target != "" && target.Subject != "" {
		return usageError{errors.New("--no-follow requires KIND/ID: announcements on a subject are not stored")}
	}
	o := tail.Options{Out: std.out, Err: std.err, JSON: c.JSON, Color: terminal.Color(std.out), Follow: c.Follow}
	if c.After != "" {
		if o.After, err = eventlog.ParseCursor(c.After); err != nil {
			return usageError{fmt.Errorf("--after: %w", err)}
		}
	}
	return connected(l.Config, func(ctx context.Context, conn *bus.Conn) error {
		if err := c.watch(ctx, conn, target, o); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
}

// connected does something on a connection to the bus, until the user ends it.
func connected(c config.Config, do func(context.Context, *bus.Conn) error) error {
	ctx, stop := endable()
	defer stop()
	conn, err := connect(ctx, c)
	if err != nil {
		return err
	}
	defer conn.Close()
	return do(ctx, conn)
}

func connect(ctx context.Context, c config.Config) (*bus.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectMaxWait)
	defer cancel()
	return process.Connect(ctx, c, "waggle/tail", zerolog.Nop())
}

func (c *tailCmd) watch(ctx context.Context, conn *bus.Conn, target tail.Target, o tail.Options) error {
	if target.Subject != "" && o.Follow {
		return tail.Announcements(ctx, conn.NATS(), target.Subject, o, conn.NATS().Flush)
	}
	store, err := eventlog.New(conn, eventlog.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	if target.Subject != "" {
		tenant, err := id.ParseTenant(cmp.Or(c.Tenant, id.DefaultTenant.String()))
		if err != nil {
			return usageError{fmt.Errorf("--tenant: %w", err)}
		}
		return tail.Newest(ctx, store, tenant, o)
	}
	return tail.Log(ctx, store, target.Log, o)
}
