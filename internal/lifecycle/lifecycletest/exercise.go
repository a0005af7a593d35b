// Package lifecycletest is the conformance suite of lifecycle.Component.
package lifecycletest

import (
	"testing"

	"github.com/waggle-dev/waggle/internal/lifecycle"
)

// Exercise runs every component that fresh makes through the uses and abuses of
// its contract. fresh returns a new component, not yet started, at each call.
func Exercise(t *testing.T, fresh func() lifecycle.Component) {
	t.Helper()
	fresh().Stop()
}
