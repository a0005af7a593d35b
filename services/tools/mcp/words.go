package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/services/tools/internal/scrub"
)

const (
	// stderrLine and stderrRate bound the logged part of a program's standard error: one line, and bytes a second. listen
	// reads and drops the rest, so that a program never blocks on its standard error.
	stderrLine = 4 << 10
	stderrRate = 64 << 10
	// lastLines and lastBytes bound what is kept of a program's words, to explain its end. Node prints up to fifteen lines
	// about an error.
	lastLines = 20
	lastBytes = 1500
)

// words are what a program prints outside of the protocol. They are safe for concurrent use.
type words struct {
	log   zerolog.Logger
	scrub scrub.Scrubber

	mu    sync.Mutex
	last  [][]byte // as the program said them: a secret is found in a whole line only
	since time.Time
	heard int // bytes logged since then
}

// hear returns a function that takes a line from the program; the log has it under the message. It cuts a long line at its
// last space: elsewhere it could cut a secret in half.
func (w *words) hear(message string) func(line []byte) {
	return func(line []byte) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) >= stderrLine {
			line = line[:bytes.LastIndexAny(line[:stderrLine], " \t")+1]
		}
		if len(bytes.TrimSpace(line)) > 0 && w.keep(line) {
			if e := w.log.Debug(); e.Enabled() {
				e.Str("line", w.scrub.Text(string(line), stderrLine)).Msg(message)
			}
		}
	}
}

// keep keeps the line, and reports whether to log it.
func (w *words) keep(line []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.last) == lastLines {
		w.last = slices.Delete(w.last, 0, 1)
	}
	w.last = append(w.last, bytes.Clone(line))
	if now := time.Now(); now.Sub(w.since) > time.Second {
		w.since, w.heard = now, 0
	}
	w.heard += len(line)
	return w.heard <= stderrRate
}

// said returns the last lines, without secrets: the end of them, if they are too long.
func (w *words) said() string {
	w.mu.Lock()
	text := string(bytes.Join(w.last, []byte("\n")))
	w.mu.Unlock()
	text = w.scrub.Text(text, lastLines*stderrLine)
	if over := len(text) - lastBytes; over > 0 {
		text = strings.ToValidUTF8(text[over:], "")
		if _, rest, ok := strings.Cut(text, "\n"); ok {
			text = rest
		}
		text = "...\n" + text
	}
	return text
}

// listen passes on the lines of r until it ends, of long lines the beginning.
func listen(r io.Reader, line func([]byte)) {
	in := bufio.NewReaderSize(r, stderrLine)
	for whole := true; ; {
		part, err := in.ReadSlice('\n')
		if whole {
			line(part)
		}
		if whole = !errors.Is(err, bufio.ErrBufferFull); err != nil && whole {
			return
		}
	}
}
