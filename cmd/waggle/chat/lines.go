package chat

import (
	"bufio"
	"io"
)

// maxLine bounds a message read from a pipe: as large as the gateway takes.
const maxLine = 256 << 10

// Piped reads messages from a file or pipe, one a line.
func Piped(r io.Reader) Lines { return scan(r, false) }

// Typed reads lines from a terminal that cannot edit lines itself.
func Typed(r io.Reader) Lines { return scan(r, true) }

func scan(r io.Reader, person bool) Lines {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	return &scanned{s, person}
}

type scanned struct {
	s      *bufio.Scanner
	person bool
}

func (p *scanned) Read() (string, error) {
	if p.s.Scan() {
		return p.s.Text(), nil
	}
	if err := p.s.Err(); err != nil {
		return "", err
	}
	return "", io.EOF
}

func (p *scanned) Person() bool { return p.person }

func (p *scanned) Close() error { return nil }
