package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"
)

const (
	// maxErrorBody bounds the read part of an error response: more than any real one has.
	maxErrorBody = 64 << 10
	// maxBody bounds a whole stream. An event of some 200 bytes a token times 128k
	// tokens, the longest output on offer, is 26 MB.
	maxBody = 128 << 20
)

// guard makes a request. It turns every unsuccessful response into a *StatusError, and ends the request if the provider is
// silent for too long.
func (c *Client) guard(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(c.first, func() { cancel(errSilent) })
	res, err := c.http.Do(req.WithContext(ctx))
	timer.Stop()
	if err != nil {
		err = guarded(ctx, plain(err))
		cancel(nil)
		return nil, err
	}
	b := &body{rc: res.Body, ctx: ctx, cancel: cancel, timer: timer, wait: c.first, idle: c.idle, left: maxBody}
	res.Body = b
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	raw, _ := io.ReadAll(io.LimitReader(b, maxErrorBody)) // a partial body suffices: the status counts
	_ = b.Close()
	return nil, statusError(res, raw, time.Now())
}

// body is a response body with a limit on silence. Time between the reader's reads does not count. One goroutine reads;
// Close may come from another.
type body struct {
	rc     io.ReadCloser
	ctx    context.Context //nolint:containedctx // the request's, which lives as long as its body.
	cancel context.CancelCauseFunc
	timer  *time.Timer
	wait   time.Duration // for the next read
	idle   time.Duration
	left   int
}

func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	b.timer.Reset(b.wait)
	n, err := b.rc.Read(p)
	b.timer.Stop()
	b.wait, b.left = b.idle, b.left-n
	if err != nil && !errors.Is(err, io.EOF) {
		err = guarded(b.ctx, err)
	}
	return n, err
}

func (b *body) Close() error {
	b.timer.Stop()
	b.cancel(nil)
	return b.rc.Close()
}

// guarded replaces the error of a request that a silent provider ended.
func guarded(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// plain removes the URL from a client error: a base URL may hold a password.
func plain(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// Ended judges a stream that ended without an error. It returns nil only if the stream is complete.
func Ended(complete bool, events int, contentType string) error {
	switch {
	case complete:
		return nil
	case events == 0 && !is(contentType, "text/event-stream"), isJSON(contentType):
		return BadReply("the answer is %q and no event stream", contentType)
	}
	return fmt.Errorf("the stream ended after %d events: %w", events, io.ErrUnexpectedEOF)
}

func is(contentType, want string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && t == want
}

func isJSON(contentType string) bool { return is(contentType, "application/json") }
