package sandbox

import (
	"encoding/json"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/waggle-dev/waggle/internal/sandbox/seccomp"
)

const (
	// shimName is the name under which this binary is a shim. No installation has a program of this name.
	shimName = "waggle-sandbox"
	// statusFD is the shim's descriptor for its report. It ends without one when the program begins.
	statusFD = 3
	// self is the running binary, even if its file was replaced.
	self = "/proc/self/exe"
)

// order tells the shim what to do. It holds no secrets: other users can read a process' arguments.
type order struct {
	Features    Features
	Init        bool `json:",omitempty"` // make the namespaces usable first, and start the rest as a child
	Map         bool `json:",omitempty"` // map the user and group, too
	UID, GID    int
	Ports       []int    `json:",omitempty"`
	Network     bool     `json:",omitempty"`
	Read, Write []string `json:",omitempty"`
	Named       []string `json:",omitempty"` // to be read, if they are still there
	Limits      Limits
	Dir         string   // the working folder
	Program     string   // empty: report the features
	Args        []string `json:",omitempty"`
}

// args returns the arguments of a shim with this order.
func (o *order) args() []string {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err) // An order holds plain values only.
	}
	return []string{shimName, string(b)}
}

// rules returns the rules for system calls.
func (o *order) rules() seccomp.Rules {
	return seccomp.Rules{Namespaces: o.Features.Namespaces, Closed: o.Features.Closed, Network: o.Network}
}

// report is the shim's answer: an error, or the features.
type report struct {
	Error    string `json:",omitempty"`
	Features *Features
}

func (r report) write() {
	b, err := json.Marshal(r)
	if err == nil {
		_, _ = unix.Write(statusFD, b) // The parent sees the end of the process anyway.
	}
}

// readReport reads the answer of a shim. Without an answer the program has begun.
func readReport(r io.Reader) (report, bool, error) {
	b, err := io.ReadAll(io.LimitReader(r, 64<<10))
	if err != nil || len(b) == 0 {
		return report{}, false, err
	}
	var out report
	return out, true, json.Unmarshal(b, &out)
}

// die reports an error and ends the shim.
func die(what string, err error) {
	report{Error: what + ": " + err.Error()}.write()
	os.Exit(1)
}
