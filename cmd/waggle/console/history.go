package console

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	// Keep is how many messages come back: what people look for is among the last few
	// hundred.
	Keep = 1000
	// slack is how far the file grows beyond Keep before it is written anew.
	slack = 500
	// maxMessage keeps a pasted book out of the file.
	maxMessage = 64 << 10
)

// History is what a person has written before, oldest first, in a file that nobody else
// may read: a line is a message as a JSON string. Several processes may add to one file.
type History struct {
	path     string // empty = it is not kept
	messages []string
}

// HistoryFile returns where the messages of the user are kept: in the folder that the XDG
// base directories name for state. Without a home it is empty.
func HistoryFile(name string) string {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "waggle", name)
}

// OpenHistory reads the file, which need not exist. A file that has grown too long is cut.
// With an error the history still works, and is not kept.
func OpenHistory(path string) (*History, error) {
	h := &History{}
	if path == "" {
		return h, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return h, fmt.Errorf("keep the history: %w", err)
	}
	lines, err := h.read(path)
	if err == nil && lines > Keep+slack {
		err = h.rewrite(path)
	}
	if err != nil {
		return h, fmt.Errorf("keep the history: %w", err)
	}
	h.path = path
	return h, nil
}

// read reads the last messages and returns how many lines the file has.
func (h *History) read(path string) (lines int, err error) {
	f, err := os.Open(path) //nolint:gosec // the user's own
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 8*maxMessage)
	for s.Scan() {
		lines++
		var m string
		if json.Unmarshal(s.Bytes(), &m) == nil && m != "" { // a line that was cut is left out
			h.remember(m)
		}
	}
	return lines, s.Err()
}

func (h *History) remember(m string) {
	if n := len(h.messages); n > 0 && h.messages[n-1] == m {
		return
	}
	h.messages = append(h.messages, m)
	if len(h.messages) > Keep {
		h.messages = append(h.messages[:0:0], h.messages[len(h.messages)-Keep:]...)
	}
}

// rewrite puts a file with the remembered messages in the place of the old one.
func (h *History) rewrite(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".history-*") // readable for the user alone
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	w := bufio.NewWriter(f)
	for _, m := range h.messages {
		_, _ = w.Write(encode(m)) // Flush tells
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func encode(m string) []byte {
	b, _ := json.Marshal(m) // a string always can be
	return append(b, '\n')
}

// Messages returns what comes back, oldest first.
func (h *History) Messages() []string { return h.messages }

// Add remembers a message, and keeps it if it can.
func (h *History) Add(m string) {
	if strings.TrimSpace(m) == "" || len(m) > maxMessage {
		return
	}
	if n := len(h.messages); n > 0 && h.messages[n-1] == m {
		return
	}
	h.remember(m)
	if h.path == "" {
		return
	}
	f, err := os.OpenFile(h.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		_, err = f.Write(encode(m)) // one write: lines of two processes do not mix
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		h.path = "" // a conversation does not end for its history
	}
}
