// Package harness keeps the names of its former self for e2e/containers, a module of its own, until that module imports
// the packages below.
package harness

import (
	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
)

// Device is client.MyAgent.
type Device = client.MyAgent

// Patience is process.Patience.
const Patience = process.Patience

// Functions of the packages below.
var (
	Binary     = process.Binary
	Eventually = process.Eventually
	Within     = process.Within
	Follow     = client.OpenMyAgent
	EndOf      = client.EndOf
)
