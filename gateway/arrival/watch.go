package arrival

import (
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
