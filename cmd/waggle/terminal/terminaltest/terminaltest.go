// Package terminaltest helps to test programs that write to a terminal.
package terminaltest

import (
	"strings"
	"sync"
)

// Watched is a writer that tells when it has got a text. It is safe for concurrent use.
type Watched struct {
	want string
	seen chan struct{}

	mu   sync.Mutex
	text strings.Builder
}

// NewWatched returns a writer that waits for the text.
func NewWatched(want string) *Watched { return &Watched{want: want, seen: make(chan struct{})} }

// Write implements io.Writer.
func (w *Watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	had := strings.Contains(w.text.String(), w.want)
	n, err := w.text.Write(b)
	if !had && strings.Contains(w.text.String(), w.want) {
		close(w.seen)
	}
	return n, err
}

// Seen is closed once the writer has got the text.
func (w *Watched) Seen() <-chan struct{} { return w.seen }

// String returns all that was written.
func (w *Watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}
