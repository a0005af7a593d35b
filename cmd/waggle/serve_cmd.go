package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/process"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/internal/sandbox"
)

type upCmd struct {
	serverFlags
	NATSAddr *string `name:"nats-addr" opt:"nats.addr" help:"Where the embedded NATS server listens (WAGGLE_NATS_ADDR; 127.0.0.1:4222)." placeholder:"HOST:PORT"`
	Data     *string `opt:"data" help:"Folder of the embedded NATS server's files (WAGGLE_DATA; ./data)." placeholder:"DIR"`
	Profile  *string `opt:"profile" help:"standard: write to disk every 10 seconds; strict: before every acknowledgement (WAGGLE_PROFILE; standard)." placeholder:"PROFILE"`
}

// Run implements the command.
func (c *upCmd) Run(std streams) error {
	l, err := load(c.Config, *c)
	if err != nil {
		return err
	}
	return serve(std, l, config.For{Roles: config.Roles, Embedded: true}, c.PrintConfig)
}

type serveCmd struct {
	serverFlags
	natsFlags
	Role []string `required:"" help:"Roles to run: gateway, session, pipeline, task, team, worker, tools." placeholder:"ROLE,..."`
}

// Run implements the command.
func (c *serveCmd) Run(std streams) error {
	roles, err := config.ParseRoles(c.Role)
	if err != nil {
		return usageError{err}
	}
	l, err := load(c.Config, *c)
	if err != nil {
		return err
	}
	return serve(std, l, config.For{Roles: roles}, c.PrintConfig)
}

func serve(std streams, l *config.Loaded, use config.For, printOnly bool) error {
	invalid := check(l, use)
	if printOnly {
		return errors.Join(l.Print(std.out), invalid)
	}
	if invalid != nil {
		return invalid
	}
	log, err := logger(l.Log, std)
	if err != nil {
		return err
	}
	if err := sandbox.Protect(); err != nil {
		log.Warn().Err(err).Msg("failed to protect process memory from other processes of this user")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	hangup, ignore := hangups(std)
	defer ignore()
	return process.Run(ctx, process.Options{
		Config: l.Config, Use: use, Source: l, Hangup: hangup, Version: version, Logger: log,
		Ready: func(r process.Running) { banner(std.out, l, use, r) },
	})
}

// hangups returns a channel of SIGHUP, which has the configuration read again. At a
// terminal it means that the window was closed, and ends the process as ever.
func hangups(std streams) (<-chan os.Signal, func()) {
	if terminal.Is(std.err) {
		return nil, func() {}
	}
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}
