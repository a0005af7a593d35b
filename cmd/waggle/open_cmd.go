package main

import (
	"fmt"
	"io"

	"github.com/cli/browser"

	"github.com/waggle-dev/waggle/cmd/waggle/process/own"
)

type openCmd struct {
	fileFlag
	Addr *string `opt:"addr" help:"Address of the gateway (WAGGLE_ADDR; 127.0.0.1:9000)." placeholder:"HOST:PORT"`
}

// Run implements the command.
func (c *openCmd) Run(std streams) error {
	l, err := load(c.Config, *c)
	if err != nil {
		return err
	}
	ctx, stop := endable()
	defer stop()
	if err := probe(ctx, l.Addr, "/"); err != nil {
		return fmt.Errorf("no console at this address: %w (start it with \"waggle up\")", err)
	}
	at, err := reachable(l.Addr)
	if err != nil {
		return err
	}
	address := "http://" + at + "/"
	if _, err := fmt.Fprintln(std.out, address); err != nil {
		return err
	}
	browser.Stdout, browser.Stderr = io.Discard, std.err
	if err := browser.OpenURL(address); err != nil {
		return fmt.Errorf("open a browser: %w (open the address yourself)", err)
	}
	return nil
}

type tokenCmd struct {
	fileFlag
	Data *string `opt:"data" help:"Data folder of the running \"waggle up\" (WAGGLE_DATA; ./data)." placeholder:"DIR"`
}

// Run implements the command.
func (c *tokenCmd) Run(std streams) error {
	l, err := load(c.Config, *c)
	if err != nil {
		return err
	}
	token, err := own.StartToken(l.Config)
	if err == nil {
		_, err = fmt.Fprintln(std.out, token)
	}
	return err
}
