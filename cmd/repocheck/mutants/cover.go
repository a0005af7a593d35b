package main

import (
	"bufio"
	"fmt"
	"go/token"
	"io"
	"path"
	"strings"
)

// block is a stretch of code of a coverage profile.
type block struct {
	startLine, startCol, endLine, endCol int
	ran                                  bool
}

// profile holds the blocks of each file, by its name.
type profile map[string][]block

// readProfile reads what the go command's -coverprofile writes.
func readProfile(r io.Reader) (profile, error) {
	p := profile{}
	in := bufio.NewScanner(r)
	for in.Scan() {
		line := in.Text()
		i := strings.LastIndexByte(line, ':')
		if i < 0 || strings.HasPrefix(line, "mode:") {
			continue
		}
		var b block
		var statements, count int
		if _, err := fmt.Sscanf(line[i+1:], "%d.%d,%d.%d %d %d", &b.startLine, &b.startCol, &b.endLine, &b.endCol, &statements, &count); err != nil {
			return nil, fmt.Errorf("read coverage %q: %w", line, err)
		}
		b.ran = count > 0
		name := path.Base(line[:i])
		p[name] = append(p[name], b)
	}
	return p, in.Err()
}

// covers reports whether the code at a place ran. A place that no block holds counts as run: the tests decide.
func (p profile) covers(file string, at token.Position) bool {
	held := false
	for _, b := range p[file] {
		if before(at.Line, at.Column, b.startLine, b.startCol) || before(b.endLine, b.endCol, at.Line, at.Column) {
			continue
		}
		if b.ran {
			return true
		}
		held = true
	}
	return !held
}

func before(line, col, otherLine, otherCol int) bool {
	return line < otherLine || line == otherLine && col < otherCol
}
