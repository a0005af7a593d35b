package arrival

import (
	"bytes"
	"net/http"
	"time"

	"golang.org/x/time/rate"
)

const (
	// resetsPerSecond and resetBurst bound the requests of one HTTP/2 connection that their client drops at once. Proxies bring
	// many clients on one connection, of whom some leave.
	resetsPerSecond = 50
	resetBurst      = 500
	// soon is how young a request is that is dropped at once: a stream that was read for a while does not count.
	soon = time.Second
)

// Watch follows the requests of connections, and ends an HTTP/2 connection whose client keeps dropping them: each costs it less
// than it costs the gateway.
func Watch(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := Of(r)
		if a != nil && a.in != nil {
			a.in.clean.Store(false)
		}
		begun := time.Now()
		defer func() {
			if r.ProtoMajor == 2 && r.Context().Err() != nil && time.Since(begun) < soon {
				a.dropped()
			}
		}()
		h.ServeHTTP(w, r)
	})
}

// dropped notes that the client has dropped a request.
func (a *Connection) dropped() {
	if a == nil {
		return
	}
	a.mu.Lock()
	if a.resets == nil {
		a.resets = rate.NewLimiter(resetsPerSecond, resetBurst)
	}
	patient := a.resets.Allow()
	a.mu.Unlock()
	if !patient {
		_ = a.nc.Close()
	}
}

// What http.Server writes by itself to a request that it does not understand: a status line, these headers, and the status again.
var (
	statusLine = []byte("HTTP/1.1 ")
	ownHeaders = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")
	moreHeader = []byte("\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff")
)

// maxRefusal is more than any of these answers has.
const maxRefusal = 512

// guarded returns such an answer with the headers that every answer has; nil for anything else.
func guarded(p []byte) []byte {
	if len(p) > maxRefusal || !bytes.HasPrefix(p, statusLine) {
		return nil
	}
	at := bytes.Index(p, []byte("\r\n"))
	if at < 0 || !bytes.HasPrefix(p[at:], ownHeaders) {
		return nil
	}
	out := make([]byte, 0, len(p)+len(moreHeader))
	out = append(out, p[:at]...)
	out = append(out, moreHeader...)
	return append(out, p[at:]...)
}
