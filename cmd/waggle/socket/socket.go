// Package socket explains failed connections of the terminal's clients.
package socket

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"syscall"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/sdk/go/link"
	"github.com/waggle-dev/waggle/sdk/go/waggle"
)

// Explain returns the end of a link in words that say what to do at the terminal. Errors that
// are not about the connection stay as they are.
func Explain(err error) error {
	if r, ok := errors.AsType[*link.RefusedError](err); ok {
		hint := ""
		switch r.Status {
		case http.StatusUnauthorized:
			hint = "; give an API key or token with --token or WAGGLE_TOKEN"
		case http.StatusNotFound:
			hint = "; check the path of --url and the session"
		}
		return fmt.Errorf("the server refused the connection (HTTP %d %s)%s", r.Status, http.StatusText(r.Status), hint)
	}
	if d, ok := errors.AsType[*link.DialError](err); ok {
		return Unreachable(d.Address, d.Err)
	}
	if c, ok := errors.AsType[*link.ClosedError](err); ok {
		return fmt.Errorf("the server closed the connection: %s (%d)", c.Reason, c.Code)
	}
	if a, ok := errors.AsType[*link.AwayError](err); ok {
		return fmt.Errorf("the server did not come back: %w", a.Err)
	}
	return err
}

// Readable reports whether others on the network can read what is sent to the address: it is another machine's, without TLS.
func Readable(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "ws" && u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

// absent says that no server listens, and what to do.
type absent struct {
	url string
	err error
}

func (a *absent) Error() string {
	return fmt.Sprintf("no server answers at %s; start one with \"waggle up\" (make run), or name another with --url", a.url)
}

func (a *absent) Unwrap() error { return a.err }

// Unreachable puts the failure to connect to a server into words.
func Unreachable(url string, err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return &absent{url, err}
	}
	return fmt.Errorf("connect to %s: %w", url, err)
}

// advices are refusals whose own words advise clients of sockets.
var advices = map[fault.Code]string{
	fault.SessionNotFound: `This session does not exist, or you may not see it. "waggle sessions list" shows the others.`,
	fault.SessionClosed:   `This session has ended. "waggle chat" starts a new one.`,
	fault.SessionDeleted:  "This session and its data were deleted.",
}

// Answered returns the error of a request to the HTTP API in words for the terminal.
func Answered(err error) error {
	e, ok := errors.AsType[*waggle.Error](err)
	if !ok {
		return Explain(err)
	}
	hint := ""
	if e.Status == http.StatusUnauthorized {
		hint = " (--token or WAGGLE_TOKEN)"
	}
	text := terminal.Line(e.Message, 500)
	if advice, ok := advices[fault.Code(e.Code)]; ok {
		text = advice
	}
	if e.Code != "" {
		text += " [" + terminal.Line(e.Code, 60) + "]"
	}
	return errors.New(text + hint)
}
