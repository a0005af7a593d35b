// Package plug runs a server as a child process that a page of its own may kill. It is for demonstrations on one machine: the
// server dies as from a power failure and starts again, and people see that nothing is lost.
package plug

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	readTimeout = 5 * time.Second // of a request, which has no body
	loopback    = "127.0.0.1:0"
)

// Plug kills a child process for pages that know its address. It is safe for concurrent use.
type Plug struct {
	origins []string
	token   string
	ln      net.Listener
	srv     *http.Server

	mu     sync.Mutex
	child  *os.Process // nil: none runs
	pulled bool        // the child that runs, or ran last, was killed here
}

// Open returns a plug that pages of the origins may pull. It listens on a loopback address until Close.
func Open(ctx context.Context, origins ...string) (*Plug, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", loopback)
	if err != nil {
		return nil, fmt.Errorf("listen for the console: %w", err)
	}
	p := &Plug{origins: origins, token: rand.Text(), ln: ln}
	p.srv = &http.Server{Handler: p, ReadTimeout: readTimeout, WriteTimeout: readTimeout}
	go func() { _ = p.srv.Serve(ln) }() // ends with Close
	return p, nil
}

// URL returns the address that kills the child with a POST request. All programs that know it may use it.
func (p *Plug) URL() string { return "http://" + p.ln.Addr().String() + "/" + p.token }

// Close ends listening.
func (p *Plug) Close() error { return p.srv.Close() }

// ServeHTTP kills the child with SIGKILL and answers 204, 409 if none runs.
func (p *Plug) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	origin := r.Header.Get("Origin")
	if subtle.ConstantTimeCompare([]byte(r.URL.Path), []byte("/"+p.token)) != 1 || !slices.Contains(p.origins, origin) {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Access-Control-Allow-Origin", origin)
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "pull the plug with POST", http.StatusMethodNotAllowed)
	case !p.pull():
		http.Error(w, "the server does not run", http.StatusConflict)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// pull kills the child and reports whether one ran.
func (p *Plug) pull() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.child == nil || p.child.Kill() != nil {
		return false
	}
	p.pulled = true
	return true
}

// Run starts the command that next returns, and starts another one each time when it was killed, by the plug or otherwise,
// after a pause of the given length. It returns nil once the context has ended and the command with it, and otherwise the
// error with which a command ended by itself. The commands get SIGTERM when the context ends. killed is called before each pause.
func (p *Plug) Run(ctx context.Context, next func(context.Context) *exec.Cmd, pause time.Duration, killed func(pid int)) error {
	for {
		c := next(ctx)
		c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
		dieWithParent(c)
		if err := p.start(c); err != nil {
			return err
		}
		err := c.Wait()
		switch dead := p.end(c); {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was told to end
		case !dead:
			return err
		}
		killed(c.Process.Pid)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

func (p *Plug) start(c *exec.Cmd) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := c.Start(); err != nil {
		return err
	}
	p.child, p.pulled = c.Process, false
	return nil
}

// end notes that the command has ended, and reports whether it was killed.
func (p *Plug) end(c *exec.Cmd) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.child = nil
	return p.pulled || signalled(c.ProcessState)
}

// Check returns an error unless the text is the URL of a plug.
func Check(url string) error {
	at, ok := strings.CutPrefix(url, "http://127.0.0.1:")
	if port, token, _ := strings.Cut(at, "/"); !ok || port == "" || token == "" {
		return errors.New("want the address that \"waggle demo\" gives")
	}
	return nil
}
