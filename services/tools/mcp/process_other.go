//go:build unix && !linux

package mcp

import "syscall"

// groupAttr puts a program into a process group of its own.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
