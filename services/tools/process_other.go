//go:build unix && !linux

package tools

import "syscall"

// groupAttr puts a program into a process group of its own.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
