package ws

import (
	"bytes"
	"errors"
	"io"
	"net"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// endBytes is how much of each end of an oversized message is kept: the members of a
// frame besides its data fit.
const endBytes = 4 << 10

// Oversize is the error of Read for a message beyond Limits.Message: all of it has been
// read and its ends are kept. The socket continues.
type Oversize struct {
	Head, Tail []byte // the first and the last bytes; they do not overlap
	Size       int64
	Limit      int64
}

// Error implements error.
func (o *Oversize) Error() string { return o.Fault().Error() }

// Unwrap returns the fault.
func (o *Oversize) Unwrap() error { return o.Fault() }

// Fault says how large the message was and how large it may be.
func (o *Oversize) Fault() *fault.Fault {
	return fault.Newf(fault.MessageTooBig, "The message has %d bytes; the limit is %d. Send less at a time.", o.Size, o.Limit)
}

// Limit gives the socket limits of its own. The goroutine that reads calls it before Read.
func (s *Socket) Limit(l Limits) {
	setDefault(&l.Message, s.hub.opts.ReadLimit)
	s.limits = l
}

// Keep returns the message that Read has returned last, to be kept until release is
// called, once.
func (s *Socket) Keep(message []byte) (kept []byte, release func()) {
	if !s.keeps {
		return bytes.Clone(message), func() {}
	}
	s.keeps = false
	return message, s.hub.vacate
}

// occupy waits until the hub has room for one more large message. The time does not count
// against the peer.
func (s *Socket) occupy() error {
	select {
	case s.hub.large <- struct{}{}:
	default:
		s.pause(true)
		select {
		case s.hub.large <- struct{}{}:
			s.pause(false)
		case <-s.done:
			s.ioErr = net.ErrClosed
			return net.ErrClosed
		}
	}
	s.holds = true
	s.began.Store(s.hub.now())
	return nil
}

// vacate gives up the room of a large message: holds is one of the socket's.
func (s *Socket) vacate(holds *bool) {
	if *holds {
		*holds = false
		s.hub.vacate()
	}
}

func (h *Hub) vacate() { <-h.large }

// pause notes that the peer waits for us and not we for the peer.
func (s *Socket) pause(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = on
	if !on && s.waiting != 0 {
		s.waiting = s.hub.now() // the pong may have been there all the time
	}
}

// fill reads into b until the message ends, or has more bytes than the limit. Each
// Options.ReadLimit bytes have MessageTimeout.
func (s *Socket) fill(r io.Reader, b []byte, limit int) (_ []byte, err error) {
	step := int(s.hub.opts.ReadLimit)
	for since := len(b); len(b) <= limit && err == nil; {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		// One byte beyond the limit tells that the message is too large: coder waits until it
		// has filled the buffer.
		var n int
		n, err = r.Read(b[len(b):min(cap(b), limit+1, len(b)+step)])
		b = b[:len(b)+n]
		if len(b)-since >= step {
			since = len(b)
			s.began.Store(s.hub.now())
		}
	}
	return b, s.ending(err)
}

// drain reads a message to its end, of which the ends are kept: o has the head and, as
// its tail, the last bytes that were read before.
func (s *Socket) drain(r io.Reader, o *Oversize) error {
	step, since := s.hub.opts.ReadLimit, o.Size
	var err error
	for err == nil {
		if o.Size > s.limits.Drain {
			s.rest = r
			return fault.New(fault.MessageTooBig)
		}
		var n int
		chunk := (*s.buf)[:cap(*s.buf)]
		n, err = r.Read(chunk)
		o.Size += int64(n)
		o.Tail = append(o.Tail, chunk[:n]...)
		if extra := len(o.Tail) - endBytes; extra > 0 {
			o.Tail = o.Tail[:copy(o.Tail, o.Tail[extra:])]
		}
		if o.Size-since >= step {
			since = o.Size
			s.began.Store(s.hub.now())
		}
	}
	if !errors.Is(err, io.EOF) || s.ending(err) != nil {
		return s.ending(err)
	}
	return o
}

// oversize keeps the ends of what has been read of a message. Its memory is of its own.
func oversize(b []byte, limit int) *Oversize {
	o := &Oversize{Size: int64(len(b)), Limit: int64(limit)}
	o.Head = bytes.Clone(b[:min(len(b), endBytes)])
	o.Tail = make([]byte, 0, endBytes+messageBuffer)
	o.Tail = append(o.Tail, b[max(len(o.Head), len(b)-endBytes):]...)
	return o
}

// ending returns nil if err is the end of a message. A connection that ends within
// one looks the same to coder, and what came of it must not pass for a message.
func (s *Socket) ending(err error) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	if s.ioErr != nil {
		return io.ErrUnexpectedEOF
	}
	return nil
}
