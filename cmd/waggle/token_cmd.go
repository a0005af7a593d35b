package main

import (
	"fmt"

	"github.com/waggle-dev/waggle/cmd/waggle/process"
)

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
	token, err := process.StartToken(l.Config)
	if err == nil {
		_, err = fmt.Fprintln(std.out, token)
	}
	return err
}
