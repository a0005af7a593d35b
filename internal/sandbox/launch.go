package sandbox

import (
	"os"
	"os/exec"
)

// Command is a program to start.
type Command struct {
	Args     []string // the program, by its path or its name in PATH, and its arguments
	Dir      string   // the working folder; empty = a private folder in a sandbox, else that of this process
	Env      []string // the whole environment
	Private  []string // variables that a sandbox sets to the private folder
	Settings Settings
}

// Launch is a program that starts.
type Launch struct {
	Cmd      *exec.Cmd // its streams and attributes may be changed before Start
	Features Features  // the layers in use
	Gaps     []Gap
	Named    []string // files and folders that the program may read because its command names them

	private string   // a folder; empty without a sandbox
	status  *os.File // the shim's report; nil without a shim
	theirs  *os.File // its other end
}

// Close removes the private folder. The program must have ended.
func (l *Launch) Close() {
	for _, f := range []*os.File{l.status, l.theirs} {
		if f != nil {
			_ = f.Close()
		}
	}
	if l.private != "" {
		_ = os.RemoveAll(l.private)
	}
}

// plain returns the launch of a program without a sandbox.
func plain(c Command) *Launch {
	cmd := exec.Command(c.Args[0], c.Args[1:]...) //nolint:gosec,noctx // The operator's command; the caller ends it.
	cmd.Dir, cmd.Env = c.Dir, c.Env
	return &Launch{Cmd: cmd, Features: none()}
}
