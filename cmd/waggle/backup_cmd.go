package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/cmd/waggle/backup"
	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/process"
)

type backupCmd struct {
	fileFlag
	natsFlags
	Out string `required:"" help:"Folder for the backup; created if missing, and must be empty." placeholder:"DIR"`
}

// Run implements the command.
func (c *backupCmd) Run(std streams) error {
	ctx, l, stop, err := operate(c.Config, *c)
	if err != nil {
		return err
	}
	defer stop()
	conn, err := process.Connect(ctx, l.Config, "waggle/backup", zerolog.Nop())
	if err != nil {
		return err
	}
	defer conn.Close()
	m, err := backup.Save(ctx, conn, c.Out, version, shown(std))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.out, "%s holds %d streams as of %s to %s\n", c.Out, len(m.Streams),
		m.Started.Format(clockFormat), m.Finished.Format(clockFormat))
	return err
}

// clockFormat is for people, in UTC.
const clockFormat = "2006-01-02 15:04:05.000Z"

type restoreCmd struct {
	fileFlag
	natsFlags
	From  string `required:"" help:"Folder with the backup." placeholder:"DIR"`
	Force bool   `help:"Delete existing streams first. The NATS user needs the permission, which no role has."`
}

// Run implements the command.
func (c *restoreCmd) Run(std streams) error {
	ctx, l, stop, err := operate(c.Config, *c)
	if err != nil {
		return err
	}
	defer stop()
	conn, err := process.ConnectToRestore(ctx, l.Config, zerolog.Nop())
	if err != nil {
		return err
	}
	defer conn.Close()
	m, err := backup.Restore(ctx, conn, c.From, backup.RestoreOptions{
		Topology: process.Topology(l.Config), Force: c.Force, Done: shown(std),
	})
	if errors.Is(err, backup.ErrNotEmpty) {
		return fmt.Errorf("%w; stop the services, then restore into a NATS server without streams, or use --force to delete the existing ones", err)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.out, "%d streams are as they were at %s; start the services now\n", len(m.Streams), m.Finished.Format(clockFormat))
	return err
}

// operate loads the configuration of a command that works on the bus until it is done or
// interrupted.
func operate(file string, flags any) (context.Context, *config.Loaded, func(), error) {
	l, err := load(file, flags)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := check(l, config.For{}); err != nil {
		return nil, nil, nil, err
	}
	ctx, stop := endable()
	return ctx, l, stop, nil
}

// shown prints a line for every stream.
func shown(std streams) backup.Progress {
	return func(s backup.Stream) {
		_, _ = fmt.Fprintf(std.out, "%-14s %9d messages %12d bytes\n", s.Name, s.Messages, s.Bytes)
	}
}
