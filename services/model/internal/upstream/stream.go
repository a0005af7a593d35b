package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/tmaxmax/go-sse"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Stream posts a request as JSON and passes the data of each event of the answer to event, until that reports the end or
// fails. It returns the type of the answer's content, for [Ended]. It does not judge an answer that ends early.
func (c *Client) Stream(
	ctx context.Context, url string, header http.Header, body any, event func([]byte) (done bool, err error),
) (contentType string, err error) {
	b, err := json.Marshal(body)
	if err != nil {
		return "", fault.New(fault.Internal).Wrap(fmt.Errorf("encode the request: %w", err))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(b))
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
	return res.Header.Get("Content-Type"), events(res.Body, event)
}

// events passes on the data of each whole event of a stream. The end of the stream may cut an event off, which then does not count.
func events(stream io.Reader, event func([]byte) (done bool, err error)) error {
	r := &ending{Reader: stream}
	var held []string
	for e, err := range sse.Read(r, &sse.ReadConfig{MaxEventSize: maxBody}) {
		switch {
		case errors.Is(err, sse.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
		held = append(held, e.Data)
		whole := len(held)
		if r.cut() { // then the library takes the rest for an event
			whole--
		}
		for _, data := range held[:whole] {
			if done, err := event([]byte(data)); err != nil || done {
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
