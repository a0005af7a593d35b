package sandbox

// Layer is one part of the confinement.
type Layer string

// Layers.
const (
	Namespaces Layer = "namespaces" // user, process, mount, network, IPC and host name
	Landlock   Layer = "landlock"
	Seccomp    Layer = "seccomp"
	Identity   Layer = "identity" // an unprivileged user for programs of a root process
)
