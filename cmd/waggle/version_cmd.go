package main

import (
	"fmt"
	"runtime"
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
