package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The scripts run this very binary as "waggle".
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"waggle": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("NO_COLOR", "1")
			return nil
		},
	})
}
