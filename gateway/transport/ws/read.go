package ws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Read returns the next whole text message. It is called by one goroutine, and the
// bytes are valid until it is called again.
//
// A message that is not text, not UTF-8 or too big is an error *fault.Fault
// (NOT_TEXT, BAD_UTF8, MESSAGE_TOO_BIG); the caller then calls Finish with the
// close code of its catalogue entry. Of a socket that drains such messages (Limits) a
// large one is an *Oversize instead, and Read may be called again. After any other error
// the socket is over or about to be (Done tells): io.EOF means that the peer closed it
// normally, ErrClosed that we did.
func (s *Socket) Read() ([]byte, error) {
	s.handBack()
	if !s.enter() {
		return nil, ErrClosed
	}
	for {
		b, err := s.message()
		if s.lost(err) {
			return nil, s.conclude(err)
		}
		if err != nil {
			s.giveBack()
		}
		s.lent, s.buf = s.buf, nil // a reader of the peer's close frame has no right to it
		s.keeps, s.holds = s.holds, false
		if s.leave() {
			return b, err
		}
		s.handBack()
		if s.late++; s.late > maxLate {
			s.quit(true)
			return nil, ErrClosed
		}
	}
}

// enter takes the reading side.
func (s *Socket) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.reading || s.closeSent || s.broken {
		return false
	}
	s.reading = true
	if s.waiting != 0 {
		s.waiting = s.hub.now() // the pong may have been there all the time
	}
	return true
}

// leave gives the reading side back, unless the socket is closing: then what was
// read is to be discarded and the peer's close frame waited for.
func (s *Socket) leave() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing != nil {
		return false
	}
	s.reading = false
	s.began.Store(0)
	return true
}

// lost reports whether err means that nothing more can be read.
func (s *Socket) lost(err error) bool {
	if err == nil {
		return false
	}
	_, refused := errors.AsType[*fault.Fault](err)
	return !refused
}

// conclude ends the socket after a read that failed, and says why it did.
func (s *Socket) conclude(err error) error {
	s.mu.Lock()
	ours := s.ours
	s.mu.Unlock()
	code, broken := websocket.CloseStatus(err), false
	switch {
	case code != -1: // coder has answered, and called peerGone
		err = farewell(code, err)
	case errors.Is(s.ioErr, net.ErrClosed):
		ours = true
	case s.ioErr != nil:
		s.cut(plainly)
		err = fmt.Errorf("ws: connection lost: %w", s.ioErr)
	case errors.Is(err, errFragments):
		broken = true
		s.broke()
		s.Finish(int(websocket.StatusMessageTooBig), errFragments.Error())
		err = fmt.Errorf("ws: %w", err)
	default:
		broken = true
		s.broke()
		s.Finish(int(websocket.StatusProtocolError), "protocol error")
		err = fmt.Errorf("ws: protocol error: %w", err)
	}
	s.quit(broken)
	if ours {
		return ErrClosed
	}
	return err
}

// broke lets the handler say what it still has to.
func (s *Socket) broke() {
	s.mu.Lock()
	h := s.handler
	s.mu.Unlock()
	if h != nil {
		h.Broken()
	}
}

func farewell(code websocket.StatusCode, err error) error {
	switch code {
	case websocket.StatusNormalClosure, websocket.StatusGoingAway, websocket.StatusNoStatusRcvd:
		return io.EOF
	default:
		return fmt.Errorf("ws: closed by the peer: %w", err)
	}
}

// quit gives the reading side back for good. A broken peer's frames make no sense
// any more: where our close frame is out already, await reads the rest.
func (s *Socket) quit(broken bool) {
	s.giveBack()
	s.mu.Lock()
	s.broken = s.broken || broken
	over := s.over
	handOn := broken && s.closeSent && !over
	s.reading = handOn
	s.mu.Unlock()
	switch {
	case over:
		s.release()
	case handOn:
		s.hearOut(true)
	}
}

// message reads the next message, or the rest of one that was refused and then the
// next.
func (s *Socket) message() ([]byte, error) {
	s.giveBack()
	if s.rest != nil {
		if err := s.finishMessage(s.rest); err != nil {
			return nil, err
		}
	}
	s.inside = false
	s.mark()
	kind, r, err := s.ws.Reader(context.Background())
	if err != nil {
		return nil, err
	}
	s.inside = true
	if kind != websocket.MessageText {
		s.rest = r
		return nil, fault.New(fault.NotText)
	}
	return s.assemble(r)
}

// assemble reads a message. One beyond Options.ReadLimit, where the socket takes such,
// has memory of its own, which the hub has room for.
func (s *Socket) assemble(r io.Reader) ([]byte, error) {
	p, ok := s.hub.msgs.Get().(*[]byte)
	if !ok {
		p = newBuffer(messageBuffer)
	}
	s.buf = p
	limit := int(s.limits.Message)
	usual := min(limit, int(s.hub.opts.ReadLimit))
	b, err := s.fill(r, *p, usual)
	if err == nil && len(b) > usual && usual < limit {
		if err = s.occupy(); err == nil {
			b, err = s.fill(r, append(make([]byte, 0, limit+1), b...), limit)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case len(b) > limit && s.limits.Drain <= s.limits.Message:
		s.rest = r
		return nil, fault.New(fault.MessageTooBig)
	case len(b) > limit:
		o := oversize(b, limit)
		s.vacate(&s.holds)
		return nil, s.drain(r, o)
	case !utf8.Valid(b):
		return nil, fault.New(fault.BadUTF8)
	}
	return b, nil
}

func (s *Socket) finishMessage(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	if err == nil {
		err = s.ending(io.EOF)
	}
	if err == nil {
		s.rest = nil
	}
	return err
}

// handBack returns the memory of the message that Read has returned last.
func (s *Socket) handBack() {
	s.vacate(&s.keeps)
	if s.lent != nil {
		s.hub.msgs.Put(s.lent)
		s.lent = nil
	}
}

// giveBack returns the memory of a message that was not handed out.
func (s *Socket) giveBack() {
	s.vacate(&s.holds)
	if s.buf != nil {
		s.hub.msgs.Put(s.buf)
		s.buf = nil
	}
}

// hearOut waits in a goroutine for the peer's answer to our close frame. The caller
// has the reading side and hands it on.
func (s *Socket) hearOut(broken bool) {
	if !s.hub.spawn(func() { s.await(broken) }) {
		s.cut(hard)
		s.release()
	}
}

// await hears the peer out after our close frame, without a reader. It
// has the reading side and ends the connection.
func (s *Socket) await(broken bool) {
	if broken || !s.goodbye() {
		s.discard()
	}
	s.giveBack()
	s.cut(plainly)
	s.release()
}

// goodbye waits for the peer's close frame, or any other end. It returns false if
// the peer has a lot to say before.
func (s *Socket) goodbye() bool {
	for s.late <= maxLate {
		if _, err := s.message(); s.lost(err) {
			return true
		}
		s.late++
	}
	return false
}
