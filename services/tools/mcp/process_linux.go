package mcp

import "syscall"

// groupAttr puts a program into a process group of its own, and makes the kernel kill it when this process dies
// unexpectedly. (Strictly, when the starting thread ends; the Go runtime keeps its threads.)
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
