package ws

import "time"

// Prober is a Handler that hears of pongs. Pong is called by the reader, and must not
// block; the payload is valid during the call.
type Prober interface {
	Handler
	Pong(payload []byte)
}

// Ping sends a ping with a payload of at most 125 bytes, within the bound of the queue. It
// keeps its place among the messages, so that its pong says that the peer has all before it.
func (s *Socket) Ping(payload []byte) bool {
	if len(payload) > short {
		payload = payload[:short]
	}
	b := make([]byte, 0, headerLen(len(payload))+len(payload))
	f := append(appendHeader(b, opPing, len(payload)), payload...)
	s.mu.Lock()
	ok := s.offer(f)
	s.unlockAndKick()
	return ok
}

// ponged hands a pong to the handler that asked for it.
func (s *Socket) ponged(payload []byte) {
	if !s.control() {
		return
	}
	s.mu.Lock()
	h := s.handler
	s.mu.Unlock()
	if p, ok := h.(Prober); ok {
		p.Pong(payload)
	}
}

// Silence returns for how long the peer has given no sign of life: it has sent
// nothing, and taken nothing of what waits for it. Without a reader it is 0.
func (s *Socket) Silence() time.Duration {
	s.mu.Lock()
	reading := s.reading && !s.paused
	s.mu.Unlock()
	if !reading {
		return 0
	}
	return time.Duration(s.hub.now() - max(s.heard.Load(), s.moved.Load()))
}
