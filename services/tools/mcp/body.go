package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
)

// boundedBody fails once the reader has exceeded the limit of a response.
type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errFlood
	}
	return n, err
}

// chargedBody fails once the server has sent more than its budget.
type chargedBody struct {
	io.ReadCloser
	budget *budget
}

func (b *chargedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if over := b.budget.charge(n); over != nil {
		return 0, over
	}
	return n, err
}

// mendBody lets the messages in the body of a response be mended while they are read.
func mendBody(res *http.Response) {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case res.StatusCode != http.StatusOK:
	case kind == "application/json":
		res.Body = &mendedBody{body: res.Body, next: wholeMessage}
	case kind == "text/event-stream":
		res.Body = &mendedBody{body: res.Body, next: nextEvent}
	default:
		return
	}
	res.ContentLength = -1
	res.Header.Del("Content-Length")
}

// mendedBody is a body whose messages are mended.
type mendedBody struct {
	body io.ReadCloser
	in   *bufio.Reader
	// next returns the next part of the body, mended, or an error after the last one.
	next func(*bufio.Reader) ([]byte, error)
	out  []byte
	err  error
}

// Read returns bytes of the next part.
func (b *mendedBody) Read(p []byte) (int, error) {
	if b.in == nil {
		b.in = bufio.NewReader(b.body)
	}
	for len(b.out) == 0 && b.err == nil {
		b.out, b.err = b.next(b.in)
	}
	n := copy(p, b.out)
	if b.out = b.out[n:]; n > 0 || len(p) == 0 {
		return n, nil
	}
	return 0, b.err
}

// Close closes the body.
func (b *mendedBody) Close() error { return b.body.Close() }

// wholeMessage reads the one message of a body.
func wholeMessage(in *bufio.Reader) ([]byte, error) {
	message, err := io.ReadAll(io.LimitReader(in, maxLine+1))
	switch {
	case err != nil:
		return nil, err
	case len(message) > maxLine:
		return nil, errLineTooLong
	}
	return mendMessage(message), io.EOF
}

// nextEvent reads one server-sent event. Its lines stay as they are unless the message needs to be mended.
func nextEvent(in *bufio.Reader) ([]byte, error) {
	e, err := readEvent(in)
	if err != nil {
		return e.raw, err
	}
	return e.mended(), nil
}

// nextOldEvent is nextEvent for the older transport. Events of other kinds than its two, such as pings, are left out: the
// SDK takes each for a message.
func nextOldEvent(in *bufio.Reader) ([]byte, error) {
	for {
		e, err := readEvent(in)
		if err != nil {
			return nil, err // an event that ends with the stream does not count
		}
		if len(e.data) > 0 && (e.message() || e.name == "endpoint") {
			return e.mended(), nil
		}
	}
}

// serverSent is a server-sent event.
type serverSent struct {
	raw  []byte // all of it
	rest []byte // the lines that hold no data
	name string
	data []byte
}

// message reports whether the event holds a message of the protocol.
func (e *serverSent) message() bool { return e.name == "" || e.name == "message" }

// mended returns the event with its message mended.
func (e *serverSent) mended() []byte {
	if !e.message() || len(e.data) == 0 {
		return e.raw
	}
	better := mendMessage(e.data)
	if bytes.Equal(better, e.data) {
		return e.raw
	}
	return bytes.Join([][]byte{e.rest, []byte("data: "), better, []byte("\n\n")}, nil)
}

// readEvent reads lines up to an empty one.
func readEvent(in *bufio.Reader) (e serverSent, _ error) {
	data := 0 // lines of it
	for {
		line, err := readLine(in, maxLine-len(e.raw))
		e.raw = append(e.raw, line...)
		if err != nil {
			return e, err
		}
		text := bytes.TrimRight(line, "\r\n")
		field, value, _ := bytes.Cut(text, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(text) == 0:
			return e, nil
		case string(field) == "data":
			if data++; data > 1 {
				e.data = append(e.data, '\n')
			}
			e.data = append(e.data, value...)
			continue
		case string(field) == "event":
			e.name = string(value)
		}
		e.rest = append(e.rest, text...)
		e.rest = append(e.rest, '\n')
	}
}

// readLine reads a line of at most room bytes with its end.
func readLine(in *bufio.Reader, room int) (line []byte, _ error) {
	for {
		part, err := in.ReadSlice('\n')
		if line = append(line, part...); len(line) > room {
			return nil, errLineTooLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
