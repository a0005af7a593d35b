package main

import (
	"context"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/process"
)

type bootstrapCmd struct {
	fileFlag
	natsFlags
	Timeout              time.Duration `help:"How long to wait for the cluster to become ready." default:"2m"`
	ChangeAuditRetention bool          `help:"Change only the limits of the audit log (audit.max_age, audit.max_bytes), as the user retention. Smaller limits remove records."`
}

// Run implements the command.
func (c *bootstrapCmd) Run(std streams) error {
	l, err := load(c.Config, *c)
	if err != nil {
		return err
	}
	if err := check(l, config.For{}); err != nil {
		return err
	}
	log, err := logger(l.Log, std)
	if err != nil {
		return err
	}
	ctx, stop := endable()
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	if c.ChangeAuditRetention {
		if err := process.ChangeAudit(ctx, l.Config, log); err != nil {
			return err
		}
		_, err = fmt.Fprintln(std.out, "the audit log has the limits of the configuration")
		return err
	}
	if err := process.Bootstrap(ctx, l.Config, log); err != nil {
		return err
	}
	_, err = fmt.Fprintln(std.out, "the streams are as the configuration has them")
	return err
}
