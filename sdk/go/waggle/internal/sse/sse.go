// Package sse takes streams of server-sent events apart.
package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxLine bounds a line: an event is one, and those of logs are far smaller.
const maxLine = 8 << 20

// Message is a message of a stream, or a comment line.
type Message struct {
	ID, Event string
	Data      string
	HasID     bool
	Comment   bool // Data is the comment
}

// Reader reads the messages of a stream. It hands out a message as soon as its last byte is there, whatever ends its lines.
type Reader struct {
	in    io.Reader
	rest  []byte // read and not yet looked at
	line  []byte // the beginning of a line
	skip  bool   // a line has ended with CR: its LF may follow
	begun bool   // the first line was looked at

	now  Message
	data []string
}

// NewReader returns a reader of the stream.
func NewReader(in io.Reader) *Reader { return &Reader{in: in} }

// Next returns the next message. At the end of the stream the error is io.EOF. An incomplete message at the end is dropped.
func (r *Reader) Next() (Message, error) {
	for {
		line, err := r.readLine()
		if err != nil {
			return Message{}, err
		}
		if m, ok := r.take(line); ok {
			return m, nil
		}
	}
}

// take takes a line, and returns the message that it ends or is.
func (r *Reader) take(line string) (Message, bool) {
	if line == "" {
		m, has := r.now, len(r.data) > 0
		m.Data = strings.Join(r.data, "\n")
		r.now, r.data = Message{}, nil
		return m, has
	}
	name, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch name {
	case "":
		return Message{Comment: true, Data: value}, true
	case "data":
		r.data = append(r.data, value)
	case "id":
		r.now.ID, r.now.HasID = value, true
	case "event":
		r.now.Event = value
	}
	return Message{}, false
}

// readLine returns the next line without its end.
func (r *Reader) readLine() (string, error) {
	for {
		if r.skip && len(r.rest) > 0 {
			r.rest, r.skip = bytes.TrimPrefix(r.rest, []byte("\n")), false
		}
		if i := bytes.IndexAny(r.rest, "\r\n"); i >= 0 {
			line := append(r.line, r.rest[:i]...)
			r.skip = r.rest[i] == '\r'
			r.line, r.rest = nil, r.rest[i+1:]
			if !r.begun {
				r.begun, line = true, bytes.TrimPrefix(line, []byte("\uFEFF"))
			}
			return string(line), nil
		}
		r.line = append(r.line, r.rest...)
		if len(r.line) > maxLine {
			return "", fmt.Errorf("a line of the stream is longer than %d MiB", maxLine>>20)
		}
		buffer := make([]byte, 16<<10)
		n, err := r.in.Read(buffer)
		r.rest = buffer[:n]
		if n == 0 && err != nil {
			if errors.Is(err, io.EOF) {
				err = io.EOF
			}
			return "", err
		}
	}
}
