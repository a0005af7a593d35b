package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
)

// race makes a process of the race detector end at once: it sleeps for a second otherwise, in case a goroutine is
// about to report something.
const race = "atexit_sleep_ms=50"

// The scripts run this very binary as "waggle".
func TestMain(m *testing.M) {
	bustest.Waiting()
	testscript.Main(m, map[string]func(){"waggle": main})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("NO_COLOR", "1")
			e.Setenv("GORACE", race)
			return nil
		},
	})
}
