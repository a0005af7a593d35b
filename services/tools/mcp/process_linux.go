package mcp

import "syscall"

// group puts a program into a process group of its own, and makes the kernel kill it when this process dies
// unexpectedly. (Strictly, when the starting thread ends; the Go runtime keeps its threads.)
func group(attr *syscall.SysProcAttr) {
	attr.Setpgid, attr.Pdeathsig = true, syscall.SIGKILL
}
