package main

import (
	"context"
	"errors"
	"os"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/doctor"
	"github.com/waggle-dev/waggle/cmd/waggle/process"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
)

type doctorCmd struct {
	processFlags
	natsFlags
	Model      *string `name:"model" optional:"configured" help:"Only test the configured model, or another one (--model=PROVIDER:NAME): streaming, a tool call, two parallel calls, JSON output. Uses a few hundred tokens." placeholder:"MODEL"`
	SystemNKey string  `name:"system-nkey" help:"Seed file of the NATS system user (system.nk); also checks every NATS server." placeholder:"FILE"`
	JSON       bool    `name:"json" help:"Print each finding as one line of JSON."`
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
	if c.Model != nil {
		return c.tryModel(std, l)
	}
	p := doctor.Patient{Config: l, Environ: os.Environ(), Probe: probe, SystemNKey: c.SystemNKey}
	return c.report(std, func(each func(doctor.Finding)) { doctor.Examine(context.Background(), p, each) })
}

// tryModel asks the model what it can do.
func (c *doctorCmd) tryModel(std streams, l *config.Loaded) error {
	if *c.Model != configured {
		l.Model = *c.Model
	}
	if l.Model == "demo" {
		return usageError{errors.New("the demo model is rule-based and needs no trial: choose another one with --model=PROVIDER:NAME or the setting \"model\"")}
	}
	m, err := process.OpenModel(l.Config)
	if err != nil {
		return usageError{err}
	}
	defer func() { _ = m.Close() }()
	return c.report(std, func(each func(doctor.Finding)) { doctor.TryModel(context.Background(), l.Config, m, each) })
}

// configured stands for the configured model.
const configured = "configured"

// report writes the findings as they come.
func (c *doctorCmd) report(std streams, examine func(func(doctor.Finding))) error {
	failed := false
	var broken error
	color := terminal.Color(std.out)
	examine(func(f doctor.Finding) {
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
