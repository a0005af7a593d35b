// Package seccomp filters the system calls of a process: the layer of the sandbox that refuses calls which no tool needs, or
// whose effects no other layer judges.
package seccomp

// Rules say what the other layers of a sandbox do, and what its program may do.
type Rules struct {
	Namespaces bool // the program has processes of its own, and may leave its process group
	Closed     bool // mounts protect the attributes of files
	Network    bool // the program may open sockets
}
