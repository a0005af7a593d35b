package ws

import (
	"io"
	"net"

	"github.com/coder/websocket"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// How a connection is cut.
type how int

const (
	orderly how = iota // both sides have said goodbye
	plainly            // the peer is gone, or did not answer in time
	hard               // now, and what the kernel still holds with it
)

// CloseCode returns the close code that says a fault: its own, 1013 for one that passes,
// else 1011.
func CloseCode(f *fault.Fault) int {
	code := fault.Lookup(f.Code).Close
	switch {
	case code == 0 && f.Retryable():
		return int(websocket.StatusTryAgainLater)
	case code == 0:
		return int(websocket.StatusInternalError)
	}
	return code
}

// End implements transport.Transport: the close frame has the fault's close code and, as
// its reason, the fault's code.
func (s *Socket) End(f *fault.Fault) { s.Finish(CloseCode(f), string(f.Code)) }

// Abort cuts the connection now. Queued messages are lost.
func (s *Socket) Abort() { s.cut(hard) }

// peerGone is called once coder is done with the connection: it has read the peer's
// close frame, or a control frame timed out.
func (s *Socket) peerGone() {
	s.mu.Lock()
	answering := s.closing != nil && !s.closeSent
	if answering {
		s.peerOver = true
		s.drop() // a peer that has said goodbye does not want it
	}
	sent := s.closeSent
	s.unlockAndKick()
	switch {
	case answering: // the connection ends when the close frame is out
	case sent:
		s.cut(orderly)
	default:
		s.cut(plainly)
	}
}

// cut ends the connection, once.
func (s *Socket) cut(by how) {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return
	}
	s.over = true
	if s.code == 0 {
		s.code = int(websocket.StatusAbnormalClosure)
	}
	s.drop()
	s.queued, s.pongs = 0, nil
	unread := !s.reading
	s.mu.Unlock()
	s.shut(by)
	s.hub.remove(s)
	close(s.done)
	if unread {
		s.release()
	}
}

// shut closes the connection. Errors do not matter: it is gone either way.
func (s *Socket) shut(by how) {
	switch by {
	case orderly:
		_ = s.nc.Close()
		return
	case hard:
		if tc, ok := s.base.(*net.TCPConn); ok {
			_ = tc.SetLinger(0)
		}
	case plainly:
	}
	_ = s.base.Close() // TLS's own goodbye could block
}

// release tells coder that the connection is over, without which its memory is
// never freed. No reader may be active.
func (s *Socket) release() {
	if s.ws != nil {
		_ = s.ws.CloseNow()
	}
}

// discard reads on without looking, so that the kernel does not answer with a
// reset that would overtake our close frame. The sweeper ends it.
func (s *Socket) discard() {
	if hc, ok := s.nc.(interface{ CloseWrite() error }); ok {
		_ = hc.CloseWrite()
	}
	_, _ = io.Copy(io.Discard, s.nc)
}
