package sandbox

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// Versions of Landlock and what they added.
const (
	landlockFiles   = 3 // all rights on files, truncation included
	landlockTCP     = 4
	landlockDevices = 5
	landlockSignals = 6
)

// Features are the layers that this process can use.
type Features struct {
	System     string // the operating system
	Namespaces bool
	OwnProc    bool // with namespaces: a /proc that shows only the program's own processes
	Closed     bool // with namespaces: all is read-only but the program's paths for writing
	Landlock   int  // version; 0 = none
	Seccomp    bool
	Root       bool // this process is root
	Identity   bool // a program does not run as root
	// Why holds the kernel's words on a layer that is missing.
	Why map[Layer]string `json:",omitempty"`
}

// none returns the features of a system without layers.
func none() Features { return Features{System: runtime.GOOS, Why: map[Layer]string{}} }

// without removes layers.
func (f Features) without(layers []Layer) Features {
	for _, l := range layers {
		switch l {
		case Namespaces:
			f.Namespaces, f.OwnProc, f.Closed = false, false, false
		case Landlock:
			f.Landlock = 0
		case Seccomp:
			f.Seccomp = false
		case Identity:
			f.Identity = false
		}
	}
	return f
}

// Gap is something that a hostile program can do for lack of a layer.
type Gap struct {
	Missing string // the layer, with the reason if known
	Allows  string
}

// Gaps returns what a hostile program with these settings could do. It is empty if the kernel has all that matters: a layer
// whose work others do is not a gap.
func (f Features) Gaps(s Settings) []Gap {
	if f.System != "linux" {
		return []Gap{{"a sandbox on " + f.System, "act as the user that runs waggle: read and write that user's files, keys and databases, and connect anywhere, NATS on loopback included"}}
	}
	var gaps []Gap
	add := func(lacks bool, layer Layer, missing, allows string) {
		if !lacks {
			return
		}
		if why := f.Why[layer]; why != "" {
			missing += " (" + why + ")"
		}
		gaps = append(gaps, Gap{missing, allows})
	}
	files := "read every file of its user: the configuration, keys and the data folder"
	if !f.Closed {
		files = "read and write every file of its user: the configuration, keys and the data folder"
	}
	add(f.Landlock == 0, Landlock, "Landlock", files)
	add(f.Landlock == 0 && !f.Namespaces, Landlock, "Landlock and namespaces", "read memory and environment of its user's other processes, from which waggle hides its own")
	add(f.Landlock > 0 && f.Landlock < landlockFiles && !f.Closed, Landlock, "version 3 of Landlock", "truncate files of its user, wherever they are")
	add(s.Network && f.Landlock < landlockTCP, Landlock, "version 4 of Landlock, which restricts ports", "connect to every port, NATS on loopback included")
	add(!f.Seccomp, Seccomp, "the seccomp filter", "use every system call, and connect to sockets in the file system")
	add(!f.Seccomp && !f.Namespaces && !s.Network, Namespaces, "seccomp and namespaces", "connect to every address, NATS on loopback included")
	add(!f.Seccomp && !f.Namespaces, Namespaces, "seccomp and namespaces", "leave processes behind")
	add(!f.Namespaces && f.Landlock < landlockSignals, Namespaces, "namespaces and version 6 of Landlock", "kill processes of its user, waggle included")
	add(f.Root && !f.Identity, Identity, "a user other than root", "start any number of processes, and use what root owns wherever another layer is missing")
	return gaps
}

// Notes returns what the layers in use do not do although nothing is missing for the settings.
func (f Features) Notes() []string {
	if f.System == "linux" && !f.Namespaces {
		return []string{"without namespaces the limit of processes counts all processes of the user together"}
	}
	return nil
}

// String lists the layers in use.
func (f Features) String() string {
	if f.System != "linux" {
		return "none"
	}
	var parts []string
	if f.Namespaces {
		parts = append(parts, "namespaces")
	}
	if f.Landlock > 0 {
		parts = append(parts, fmt.Sprintf("Landlock %d", f.Landlock))
	}
	if f.Seccomp {
		parts = append(parts, "seccomp")
	}
	return strings.Join(append(parts, "limits"), ", ")
}

// GapError refuses a program whose sandbox would have gaps.
type GapError struct{ Gaps []Gap }

// Error implements error.
func (e *GapError) Error() string {
	var missing []string
	for _, g := range e.Gaps {
		if !slices.Contains(missing, g.Missing) {
			missing = append(missing, g.Missing)
		}
	}
	return "tools.sandbox is require, and this machine lacks " + strings.Join(missing, "; ") + " (waggle doctor explains it)"
}
