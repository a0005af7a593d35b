package strangers

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// kept is the number of sockets that a bare server keeps: as many as a gateway.
const kept = 500

// Bare serves strangers as cheaply as net/http can, until ctx ends: it refuses all logins at once, and holds the youngest
// sockets. Users notice of strangers who attack it only how much of the machine these take.
func Bare(ctx context.Context, addr string) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	b := &bare{sockets: make([]net.Conn, kept)}
	s := &http.Server{Handler: b, ReadHeaderTimeout: maxWait}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

type bare struct {
	mu      sync.Mutex
	sockets []net.Conn // a ring
	next    int
}

// ServeHTTP implements http.Handler.
func (b *bare) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	_ = conn.SetDeadline(time.Time{})
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	b.mu.Lock()
	oldest := b.sockets[b.next]
	b.sockets[b.next] = conn
	b.next = (b.next + 1) % len(b.sockets)
	b.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
}
