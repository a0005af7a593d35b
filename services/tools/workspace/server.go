package workspace

import "sync"

// server holds the common parts of all tools.
type server struct {
	folders *Folders
	write   sync.Mutex // one writer at a time: an append reads, adds and replaces
}
