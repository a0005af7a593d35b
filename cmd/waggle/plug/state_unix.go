//go:build unix

package plug

import (
	"os"
	"syscall"
)

// signalled reports whether SIGKILL ended the process.
func signalled(s *os.ProcessState) bool {
	w, ok := s.Sys().(syscall.WaitStatus)
	return ok && w.Signaled() && w.Signal() == syscall.SIGKILL
}
