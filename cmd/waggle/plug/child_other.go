//go:build !linux

package plug

import "os/exec"

// dieWithParent does nothing: only Linux can tie the life of a child to that of its parent.
func dieWithParent(*exec.Cmd) {}
