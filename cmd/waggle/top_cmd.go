package main

import (
	"errors"
	"os"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/cmd/waggle/top"
)

type topCmd struct{ gatewayFlags }

// Run implements the command.
func (c *topCmd) Run(std streams) error {
	if !terminal.Is(std.in) || !terminal.Is(std.out) {
		return usageError{errors.New("top needs a terminal; use \"waggle sessions list\" or \"waggle tasks list\" with files and pipes")}
	}
	ctx, stop := endable()
	defer stop()
	w, err := c.open(ctx)
	if err != nil {
		return err
	}
	return top.Run(ctx, top.Options{
		Gateway: w, URL: config.RedactURLs(c.URL), In: std.in, Out: std.out, Environ: os.Environ(), Color: terminal.Color(std.out),
	})
}
