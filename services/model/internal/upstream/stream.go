package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/tmaxmax/go-sse"
)

// Event is one event of a streamed answer.
type Event struct {
	Name string // usually empty with chat completions
	Data []byte // without white space around it, never empty
}

// Stream posts a request, which is JSON, and passes each event of the answer to event, until that reports the end or fails. An answer
// that is JSON and no stream counts as one event. Stream returns the type of the answer's content, for [Ended]. It does not
// judge an answer that ends early.
func (c *Client) Stream(
	ctx context.Context, url string, header http.Header, body []byte, event func(Event) (done bool, err error),
) (contentType string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return "", plain(err)
	}
	req.Header = header.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("User-Agent", "waggle")
	res, err := c.guard(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }() // its error tells nothing new
	contentType = res.Header.Get("Content-Type")
	if isJSON(contentType) {
		return contentType, document(res.Body, event)
	}
	return contentType, events(res.Body, event)
}

// document passes on an answer in one JSON document.
func document(body io.Reader, event func(Event) (done bool, err error)) error {
	raw, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if raw = bytes.TrimSpace(raw); len(raw) == 0 {
		return nil
	}
	_, err = event(Event{Data: raw})
	return err
}

// events passes on each whole event of a stream. The end of the stream may cut an event off, which then does not count. Events
// without data, and those whose data is a comment, are keep-alives.
func events(stream io.Reader, event func(Event) (done bool, err error)) error {
	r := &ending{Reader: &errorLines{r: stream}}
	var held []sse.Event
	for e, err := range sse.Read(r, &sse.ReadConfig{MaxEventSize: maxBody}) {
		switch {
		case errors.Is(err, sse.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
		held = append(held, e)
		whole := len(held)
		if r.cut() { // then the library takes the rest for an event
			whole--
		}
		for _, e := range held[:whole] {
			data := bytes.TrimSpace([]byte(e.Data))
			if len(data) == 0 || data[0] == ':' {
				continue
			}
			if done, err := event(Event{Name: e.Type, Data: data}); err != nil || done {
				return err
			}
		}
		held = held[whole:]
	}
	return nil
}

// ending is a stream that knows whether it has ended within an event.
type ending struct {
	io.Reader
	tail  []byte
	ended bool
}

// Read implements io.Reader.
func (e *ending) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	e.tail = append(e.tail, p[max(0, n-len(blankLine)):n]...)
	e.tail = e.tail[max(0, len(e.tail)-len(blankLine)):]
	e.ended = e.ended || errors.Is(err, io.EOF)
	return n, err
}

// blankLine is the longest end of an event.
const blankLine = "\r\n\r\n"

// cut reports whether the stream has ended without a blank line.
func (e *ending) cut() bool {
	if !e.ended {
		return false
	}
	for _, end := range []string{"\n\n", "\r\r", "\n\r", blankLine} {
		if bytes.HasSuffix(e.tail, []byte(end)) {
			return false
		}
	}
	return true
}

// errorLines is a stream whose lines of the form "error: {...}", which do not belong to the format of event streams, become
// events with the name "error". llama.cpp sends them.
type errorLines struct {
	r       io.Reader
	out     []byte // for the caller
	in      []byte
	at      int  // matched bytes of the line's beginning; -1 = this line is another one
	errored bool // within such a line
	err     error
}

// maxChunk bounds what is read at once.
const maxChunk = 1 << 20

const (
	errorField = "error:"
	errorEvent = "event: error\ndata:"
)

// Read implements io.Reader.
func (l *errorLines) Read(p []byte) (int, error) {
	for len(l.out) == 0 && l.err == nil {
		if len(l.in) < len(p) && len(l.in) < maxChunk { // a reader that asks for more at once scans what it has anew
			l.in = make([]byte, min(len(p), maxChunk))
		}
		n, err := l.r.Read(l.in)
		for _, c := range l.in[:n] {
			l.take(c)
		}
		if l.err = err; err != nil {
			l.end()
		}
	}
	if len(l.out) == 0 {
		return 0, l.err
	}
	n := copy(p, l.out)
	l.out = l.out[:copy(l.out, l.out[n:])]
	return n, nil
}

func (l *errorLines) take(c byte) {
	newline := c == '\n' || c == '\r'
	switch {
	case l.at >= 0 && c == errorField[l.at]:
		if l.at++; l.at == len(errorField) {
			l.out, l.at, l.errored = append(l.out, errorEvent...), -1, true
		}
		return
	case l.at > 0:
		l.out = append(l.out, errorField[:l.at]...)
	}
	l.out = append(l.out, c)
	switch {
	case newline && l.errored:
		l.out, l.at, l.errored = append(l.out, '\n'), 0, false
	case newline:
		l.at = 0
	default:
		l.at = -1
	}
}

// end completes the last line.
func (l *errorLines) end() {
	if l.at > 0 {
		l.out = append(l.out, errorField[:l.at]...)
	}
	if l.errored {
		l.out = append(l.out, "\n\n"...)
	}
}
