// Package sandbox starts programs that this process does not trust: with the files, the network and the resources that their
// settings name, and nothing else of the machine.
//
// A program starts through this process' own binary: started under a certain name, it confines itself and then becomes the
// program (shim_linux.go). Each layer of the confinement has a file, or a package. A kernel may lack layers; Gaps names what a hostile
// program could then do. Only Linux has any.
package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Mode says how to handle layers that the kernel lacks.
type Mode string

// Modes.
const (
	Prefer  Mode = "prefer"  // use the layers that exist
	Require Mode = "require" // refuse to start a program with a gap
	Off     Mode = "off"     // start programs as they are
)

// Modes lists all modes.
var Modes = []Mode{Prefer, Require, Off}

// Defaults of the limits.
const (
	defaultProcesses = 256 // threads count, too
	defaultOpenFiles = 4096
	defaultMemory    = 4 << 30
	defaultFileSize  = 1 << 30
	defaultCPU       = 4 * time.Hour
)

// webPorts are the TCP ports of a program with a network.
var webPorts = []int{80, 443}

// Settings describe what one program may do. The zero value is the strictest.
type Settings struct {
	Mode Mode // empty = Prefer

	// Network lets the program connect to TCP ports 80, 443 and Ports, and use UDP.
	Network bool
	Ports   []int
	// Read and Write are further files and folders, read-only or not. The program may read and write its working folder, and
	// read what its command names (named_linux.go).
	Read, Write []string
	// Secret are files and folders that the program does not get by naming them in its command, nor a folder that holds one.
	Secret []string
	// Loose are folders in which others may replace files: naming a file there does not open it.
	Loose []string

	Limits Limits

	// Without leaves out layers, so that tests see what a kernel without them does.
	Without []Layer
}

// Limits bound the resources of the program. Zero means the default.
type Limits struct {
	Processes int           // processes and threads of the program and its descendants together
	OpenFiles int           // open files of a process
	Memory    int64         // bytes of private memory of a process
	FileSize  int64         // bytes of a file that a process writes
	CPU       time.Duration // processor time of a process, which the kernel then kills
}

// Complete checks the settings and fills in defaults. Errors begin with the option.
func (s *Settings) Complete() error {
	if s.Mode == "" {
		s.Mode = Prefer
	}
	if !slices.Contains(Modes, s.Mode) {
		return fmt.Errorf("sandbox: %q is not one of %v", s.Mode, Modes)
	}
	for _, p := range s.Ports {
		if p < 1 || p > 65535 {
			return fmt.Errorf("network_ports: %d is not a port", p)
		}
	}
	if len(s.Ports) > 0 && !s.Network {
		return errors.New("network_ports: has no effect without network: true")
	}
	return s.Limits.complete()
}

func (l *Limits) complete() error {
	if l.Processes < 0 || l.OpenFiles < 0 || l.Memory < 0 || l.FileSize < 0 || l.CPU < 0 {
		return errors.New("limits: must not be negative")
	}
	if l.CPU > 0 && l.CPU < time.Second {
		return errors.New("limits.cpu: must be a second or more")
	}
	fill(&l.Processes, defaultProcesses)
	fill(&l.OpenFiles, defaultOpenFiles)
	fill(&l.Memory, defaultMemory)
	fill(&l.FileSize, defaultFileSize)
	fill(&l.CPU, defaultCPU)
	return nil
}

func fill[T int | int64 | time.Duration](v *T, otherwise T) {
	if *v == 0 {
		*v = otherwise
	}
}

// Reaches returns the TCP ports that the program may connect to.
func (s *Settings) Reaches() []int {
	if !s.Network {
		return nil
	}
	return append(slices.Clone(webPorts), s.Ports...)
}
