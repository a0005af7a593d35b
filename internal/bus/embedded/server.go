package embedded

import (
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// mendPause spaces the looks at a full disk.
	mendPause = time.Second
	// mendAgain is the least time between two restarts: a disk that stays broken must not keep the server from reading.
	mendAgain = 10 * time.Second
	// room is the free space with which a server starts again: enough for a block of each busy stream.
	room = 64 << 20
)

// Server is a server that mends itself. After a failed write nats-server refuses every later write to the same stream until it
// is restarted, so Server restarts it, on the same address, as soon as its disk has space.
type Server struct {
	cfg  Config
	hurt chan struct{}
	stop chan struct{}
	done chan struct{}

	mu   sync.Mutex
	now  *server.Server
	dead map[string]bool // streams that take no messages; the name "" is all of them
}

// Open starts a server as Start does, and mends it until Close.
func Open(cfg Config) (*Server, error) {
	s := &Server{cfg: cfg, hurt: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}), dead: map[string]bool{}}
	now, err := start(cfg, s.failed)
	if err != nil {
		return nil, err
	}
	s.now = now
	if at, ok := now.Addr().(*net.TCPAddr); ok {
		s.cfg.Port = at.Port // after a restart, too
	}
	go s.mendAll()
	return s, nil
}

// InProcessConn connects to the server without a socket.
func (s *Server) InProcessConn() (net.Conn, error) { return s.current().InProcessConn() }

// ClientURL returns the address for clients.
func (s *Server) ClientURL() string { return s.current().ClientURL() }

// Close ends the server and returns when its files are closed.
func (s *Server) Close() {
	close(s.stop)
	<-s.done
	now := s.current()
	now.Shutdown()
	now.WaitForShutdown()
}

func (s *Server) current() *server.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// Trouble returns why the server takes no messages, with the names of the streams, or nil.
func (s *Server) Trouble() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(s.dead) == 0:
		return nil
	case s.dead[""]:
		return fmt.Errorf("the embedded NATS server cannot write to %s; make room there, and it continues by itself", s.cfg.StoreDir)
	}
	return fmt.Errorf("the embedded NATS server cannot write to %s, streams %s; make room there, and it continues by itself",
		s.cfg.StoreDir, strings.Join(slices.Sorted(maps.Keys(s.dead)), ", "))
}

// failed notes a stream that takes no more messages. The server calls it with locks held, so it does not wait.
func (s *Server) failed(stream string) {
	s.mu.Lock()
	s.dead[stream] = true
	s.mu.Unlock()
	select {
	case s.hurt <- struct{}{}:
	default:
	}
}

// mendAll restarts the server after each failed write, until Close.
func (s *Server) mendAll() {
	defer close(s.done)
	for {
		select {
		case <-s.stop:
			return
		case <-s.hurt:
		}
		s.cfg.Logger.Error().Err(s.Trouble()).Msg("embedded NATS server stopped; waiting for disk space")
		if !s.pause(mendPause, func() bool { return roomy(s.cfg.StoreDir) }) || !s.restart() {
			return
		}
		s.cfg.Logger.Warn().Msg("embedded NATS server restarted after disk space was freed")
		if !s.pause(mendAgain, nil) {
			return
		}
	}
}

// restart replaces the server, and tries until one starts. It returns false at Close.
func (s *Server) restart() bool {
	old := s.current()
	old.Shutdown()
	old.WaitForShutdown()
	s.mu.Lock()
	clear(s.dead)
	s.dead[""] = true
	s.mu.Unlock()
	select {
	case <-s.hurt: // of the old server
	default:
	}
	for {
		now, err := start(s.cfg, s.failed)
		if err == nil {
			s.mu.Lock()
			s.now = now
			delete(s.dead, "")
			s.mu.Unlock()
			return true
		}
		s.cfg.Logger.Error().Err(err).Msg("failed to restart embedded NATS server")
		if !s.pause(mendAgain, nil) {
			return false
		}
	}
}

// pause waits that long, and again until over returns true. It returns false at Close.
func (s *Server) pause(each time.Duration, over func() bool) bool {
	t := time.NewTicker(each)
	defer t.Stop()
	for {
		if over != nil && over() {
			return true
		}
		select {
		case <-s.stop:
			return false
		case <-t.C:
		}
		if over == nil {
			return true
		}
	}
}

// roomy reports whether the folder's disk takes new files. Writing one also finds quotas, which the free space does not show.
func roomy(dir string) bool {
	if free, err := free(dir); err != nil || free < room {
		return false
	}
	f, err := os.CreateTemp(dir, ".room-*")
	if err != nil {
		return false
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(make([]byte, 1<<20))
	if err == nil {
		err = f.Sync()
	}
	return f.Close() == nil && err == nil
}
