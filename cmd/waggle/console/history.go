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
	// Keep is the number of recalled messages: users look for one of the last few hundred.
	Keep = 1000
	// slack is the number of lines by which the file may exceed Keep before a rewrite.
	slack = 500
	// maxMessage keeps very long pastes out of the file.
	maxMessage = 64 << 10
)

// History holds the user's earlier messages, oldest first, in a file that only the user may read: a line is a message as a
// JSON string. Several processes may add to one file.
type History struct {
	path     string // empty = in memory only
	messages []string
}

// HistoryFile returns the path of the user's messages: in the folder that the XDG base directories name for state. Without a
// home it is empty.
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

// OpenHistory reads the file, which need not exist, and shortens a file that is too long. With an error it still returns a
// working history, which stays in memory.
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

// read reads the last messages and returns the number of lines in the file.
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
		if json.Unmarshal(s.Bytes(), &m) == nil && m != "" { // skip a cut line
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

// rewrite replaces the file with the remembered messages.
func (h *History) rewrite(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".history-*") // with permissions for the user alone
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	w := bufio.NewWriter(f)
	for _, m := range h.messages {
		_, _ = w.Write(encode(m)) // Flush returns the error
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func encode(m string) []byte {
	b, _ := json.Marshal(m) // a string always marshals
	return append(b, '\n')
}

// Messages returns the recalled messages, oldest first.
func (h *History) Messages() []string { return h.messages }

// Add remembers a message, and writes it to the file if possible.
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
		_, err = f.Write(encode(m)) // one write, so that lines of two processes do not mix
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		h.path = "" // a failed history does not end a conversation
	}
}
