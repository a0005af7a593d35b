package main

import (
	"context"
	"errors"
	"os"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/doctor"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
)

type doctorCmd struct {
	serverFlags
	natsFlags
	SystemNKey string `name:"system-nkey" help:"Seed file of the NATS system user (system.nk): asks every NATS server, too." placeholder:"FILE"`
	JSON       bool   `name:"json" help:"One line of JSON for each finding."`
}

// Run implements the command.
func (c *doctorCmd) Run(std streams) error {
	l, err := load(c.Config, *c)
	if err != nil {
		return err
	}
	if c.PrintConfig {
		return l.Print(std.out)
	}
	if l.Addr == "" {
		l.Addr = config.DefaultAddr
	}
	failed := false
	var broken error
	color := terminal.Color(std.out)
	p := doctor.Patient{Config: l, Environ: os.Environ(), Probe: probe, SystemNKey: c.SystemNKey}
	doctor.Examine(context.Background(), p, func(f doctor.Finding) {
		if c.JSON {
			broken = errors.Join(broken, doctor.WriteJSON(std.out, f))
		} else {
			doctor.Write(std.out, f, color)
		}
		failed = failed || f.Level == doctor.Fail
	})
	if failed {
		return errSilent
	}
	return broken
}
