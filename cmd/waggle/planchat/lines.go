package planchat

import "github.com/waggle-dev/waggle/cmd/waggle/chat"

// line is one line of a person.
type line struct {
	text string
	err  error
}

// reader reads lines on request. A line whose request was withdrawn answers the next request.
type reader struct {
	lines   chat.Lines
	got     chan line
	reading bool
}

func newReader(lines chat.Lines) *reader { return &reader{lines: lines, got: make(chan line, 1)} }

// next returns where the next line arrives. The caller calls taken with it.
func (r *reader) next() <-chan line {
	if !r.reading {
		r.reading = true
		go func() {
			text, err := r.lines.Read()
			r.got <- line{text, err}
		}()
	}
	return r.got
}

func (r *reader) taken() { r.reading = false }
