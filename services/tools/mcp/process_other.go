//go:build unix && !linux

package mcp

import "syscall"

// group puts a program into a process group of its own.
func group(attr *syscall.SysProcAttr) { attr.Setpgid = true }
