package main

import (
	"fmt"
	"runtime"

	"github.com/alecthomas/kong"
)

// Set by the linker.
var (
	version = "devel"
	commit  = "unknown"
)

type versionCmd struct{}

// Run implements the command.
func (versionCmd) Run(std streams) error {
	_, err := fmt.Fprintf(std.out, "waggle %s (commit %s, %s, %s/%s)\n", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// versionFlag is the command as a flag, which people try first.
type versionFlag bool

// BeforeReset prints the version instead of running the command.
func (versionFlag) BeforeReset(app *kong.Kong, std streams) error {
	err := versionCmd{}.Run(std)
	app.Exit(0)
	return err
}
