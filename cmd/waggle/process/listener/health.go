package listener

import (
	"errors"
	"net/http"
)

// NewHealth answers probes for processes without a gateway.
func NewHealth(addr string, ready func() error) *Listener {
	mux := http.NewServeMux()
	h := newListener("health", addr, mux)
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		err := ready()
		if h.isDraining() {
			err = errors.New("draining")
		}
		if err != nil {
			http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ready\n"))
	})
	return h
}
