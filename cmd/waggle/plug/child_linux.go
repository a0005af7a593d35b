package plug

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel end the child when this process dies unexpectedly.
func dieWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
