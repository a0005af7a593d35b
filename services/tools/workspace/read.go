package workspace

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

const (
	// maxRead bounds the text that one call returns: below the tool service's output limit of 128 KiB, so that the closing
	// remark is never cut off.
	maxRead = 96 << 10
	// maxScan bounds the bytes that one call reads from disk, about a tenth of a second.
	maxScan = 64 << 20
	// block is the size of the reads; a call checks for cancellation once a block.
	block = 64 << 10
)

type readArgs struct {
	Path   string `json:"path" jsonschema:"the file to read, relative to the workspace, for example notes.md"`
	Offset int    `json:"offset,omitempty" jsonschema:"the first line to read, counted from 1; 0 or nothing means the first"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many lines to read; 0 or nothing means as many as fit"`
}

// read returns lines of a text file.
func (s *server) read(ctx context.Context, root *os.Root, in readArgs) (string, error) {
	if in.Offset < 0 || in.Limit < 0 {
		return "", errors.New("offset and limit may not be negative")
	}
	path, err := local(in.Path)
	if err != nil {
		return "", err
	}
	f, info, err := openFile(root, path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info.Size() == 0 {
		return "[The file is empty.]", nil
	}
	src := &io.LimitedReader{R: withContext(ctx, f), N: maxScan}
	r := &lines{src: src, in: bufio.NewReaderSize(src, block), line: 1}
	first := max(in.Offset, 1)
	if err := r.skip(first - 1); err != nil {
		return "", explain(path, err)
	}
	if err := r.take(in.Limit, maxRead); err != nil {
		return "", explain(path, err)
	}
	return r.render(path, first)
}

// lines collects text by lines.
type lines struct {
	src  *io.LimitedReader
	in   *bufio.Reader
	line int // number of the line at the reader's position
	text []byte
	cut  bool // the last line is incomplete
	more bool // the file continues
}

// skip skips n lines of any length without keeping them.
func (l *lines) skip(n int) error {
	for n > 0 {
		_, err := l.in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		default:
			n--
			l.line++
		}
	}
	return nil
}

// take keeps lines until it has limit of them (0 = no limit) or size bytes.
func (l *lines) take(limit, size int) error {
	for n := 0; limit == 0 || n < limit; {
		part, err := l.in.ReadSlice('\n')
		if room := size - len(l.text); len(part) > room {
			l.text = append(l.text, part[:room]...)
			l.cut, l.more = true, true
			return nil
		}
		l.text = append(l.text, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		default:
			n++
			l.line++
		}
	}
	_, err := l.in.Peek(1)
	l.more = err == nil
	return nil
}

// render returns the text, with a remark if the file continues.
func (l *lines) render(path string, first int) (string, error) {
	if l.src.N <= 0 && l.in.Buffered() == 0 {
		return "", fmt.Errorf("line %d of %s is beyond the first %d MiB, which is as far as files are read", l.line, clip(path), maxScan>>20)
	}
	if len(l.text) == 0 {
		return "", fmt.Errorf("%s has no line %d; it ends at line %d", clip(path), first, l.line-1)
	}
	if l.cut {
		l.dropPart()
	}
	if !isText(l.text) {
		return "", fmt.Errorf("%s is not a text file", clip(path))
	}
	if !l.more {
		return string(l.text), nil
	}
	var b strings.Builder
	b.Write(l.text)
	if l.text[len(l.text)-1] != '\n' {
		b.WriteByte('\n')
	}
	if l.cut {
		fmt.Fprintf(&b, "[Line %d is too long and was cut off here. Continue with offset %d.]", l.line, l.line+1)
	} else {
		fmt.Fprintf(&b, "[These are lines %d to %d. The file goes on: continue with offset %d.]", first, l.line-1, l.line)
	}
	return b.String(), nil
}

// dropPart removes the read part of an incomplete last line, if whole lines precede it. Otherwise it removes an incomplete
// character only.
func (l *lines) dropPart() {
	if i := bytes.LastIndexByte(l.text, '\n'); i >= 0 {
		l.text, l.cut = l.text[:i+1], false
		return
	}
	for i := 1; i < utf8.UTFMax && i <= len(l.text); i++ {
		if tail := l.text[len(l.text)-i:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				l.text = l.text[:len(l.text)-i]
			}
			return
		}
	}
}

// isText reports whether b is UTF-8 without NUL.
func isText(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }

// withContext makes reads fail once ctx has ended.
func withContext(ctx context.Context, r io.Reader) io.Reader { return &ctxReader{ctx, r} }

type ctxReader struct {
	ctx context.Context //nolint:containedctx // It is the reader's only purpose.
	r   io.Reader
}

func (c *ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
