package ws

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Handler hears of what happens to a socket besides its messages. No method may
// block, and none may call Hub.Close. They may be called concurrently.
type Handler interface {
	// Low: the queue has drained to half of its bound after a Send that was
	// refused. Called by a writer.
	Low()
	// Tick is called about once a second by the sweeper; more often when the hub
	// has timeouts of less than four seconds.
	Tick(now time.Time)
	// Control: a ping or pong has arrived. False means that too many have come:
	// the socket is closed with 1008. Called by the reader.
	Control() bool
	// Broken: the peer has broken the protocol, and the socket is closed with 1002 once
	// this returns: what is said until then goes out. Called by the reader.
	Broken()
	// Ended: the hub ends the socket for the reason f, and has not done so yet: a
	// frame that is forced now goes out before the close. Called by the sweeper, at
	// most once.
	Ended(f *fault.Fault)
}

var _ transport.Transport = (*Socket)(nil)

// Socket is one WebSocket connection. All methods but Bind and Read may be called
// concurrently at any time.
type Socket struct {
	hub   *Hub
	shard *shard
	ws    *websocket.Conn
	nc    net.Conn // as the HTTP server had it, perhaps TLS
	base  net.Conn // the connection beneath
	out   sink
	done  chan struct{}
	place int // in the hub's list; guarded by the hub

	heard atomic.Int64 // when the peer was last heard of
	began atomic.Int64 // when the message that is being read began; 0 = none is
	moved atomic.Int64 // when the peer that is behind last accepted something

	lent   *[]byte // the message that Read has returned last; of the goroutine that calls it
	keeps  bool    // the hub's room for it; the same
	limits Limits  // the same

	// Of the goroutine that reads.
	in     *bufio.Reader
	early  []byte    // read by the HTTP server before it was ours
	buf    *[]byte   // the last message
	holds  bool      // the hub's room for it
	rest   io.Reader // the rest of a message that was refused
	inside bool      // within a message, so that control frames are between its parts
	ioErr  error     // the connection failed or ended
	frames fragments // that the peer sends
	late   int       // messages and control frames that came after our close frame was due

	mu      sync.Mutex
	handler Handler
	queue   []frame // from head on
	head    int
	queued  int    // bytes of the queue and of the chunk that is being written
	pongs   []byte // control frames that wait
	dirty   bool   // in the shard's list or being drained
	behind  bool   // a goroutine of its own writes
	refused bool   // a Send was, and Low has not been called since
	reading bool   // a goroutine uses coder's reading side
	paused  bool   // and waits for the hub's room for a large message
	broken  bool   // the peer broke the protocol: its frames make no sense any more
	ended   bool   // the handler knows

	pingAt  int64 // when the next ping is due
	waiting int64 // since when a ping is unanswered; 0 = none is

	code      int    // of the close
	ours      bool   // we began the close handshake
	closing   []byte // the close frame, nil before it is made
	closeOut  bool   // handed to the network, perhaps not all of it
	closeSent bool
	closeBy   int64 // when the wait ends
	hurried   bool  // the queue has been dropped for lack of time
	peerOver  bool  // the peer's side of the close handshake is done
	over      bool
}

func newSocket(h *Hub) *Socket {
	n := h.next.Add(1) % uint64(len(h.shards))
	return &Socket{
		hub: h, shard: h.shards[n], done: make(chan struct{}), place: -1, limits: Limits{Message: h.opts.ReadLimit},
	}
}

func (s *Socket) attach(nc net.Conn, out sink) {
	s.nc, s.base, s.out = nc, beneath(nc), out
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok {
		s.base = t.NetConn()
	}
	now := s.hub.now()
	s.heard.Store(now)
	s.pingAt = now + int64(s.hub.opts.PingInterval)
}

// Bind sets the handler. It must be called before the first Read or Send.
func (s *Socket) Bind(h Handler) {
	s.mu.Lock()
	s.handler = h
	s.mu.Unlock()
}

// Subprotocol returns the subprotocol that was agreed, or "".
func (s *Socket) Subprotocol() string { return s.ws.Subprotocol() }

// Done is closed when the connection is over.
func (s *Socket) Done() <-chan struct{} { return s.done }

// Queued returns the bytes that wait to be written.
func (s *Socket) Queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queued
}

// CloseCode returns the code with which the socket ended or is ending: that of the
// first Finish or of the peer, 1006 if the connection broke, 0 while it is open.
func (s *Socket) CloseCode() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.code
}

// Finishing reports whether we have begun to end the socket.
func (s *Socket) Finishing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ours
}

// Send implements transport.Transport. Where it accepts fewer than all, Handler.Low is
// called when the queue has drained to half.
func (s *Socket) Send(ms ...*transport.Message) (accepted int) {
	s.mu.Lock()
	for _, m := range ms {
		if !s.offer(text(m)) {
			break
		}
		accepted++
	}
	s.unlockAndKick()
	return accepted
}

// offer appends a frame if the queue has room; the caller has locked.
func (s *Socket) offer(f frame) bool {
	if s.closing != nil || s.over {
		return false
	}
	if s.queued > 0 && s.queued+len(f) > s.hub.opts.QueueBytes {
		s.refused = true
		return false
	}
	s.put(f)
	return true
}

// Force implements transport.Transport.
func (s *Socket) Force(m *transport.Message) bool {
	f := text(m)
	s.mu.Lock()
	ok := s.closing == nil && !s.over &&
		(s.queued == 0 || s.queued+len(f) <= s.hub.opts.QueueBytes+forceExtra)
	if ok {
		s.put(f)
	}
	s.unlockAndKick()
	return ok
}

// put appends a frame; the caller has locked.
func (s *Socket) put(f frame) {
	if s.head > 0 && len(s.queue) == cap(s.queue) {
		n := copy(s.queue, s.queue[s.head:])
		clear(s.queue[n:])
		s.queue, s.head = s.queue[:n], 0
	}
	s.queue = append(s.queue, f)
	s.queued += len(f)
}

// unlockAndKick unlocks, and tells the shard if it has something to do.
func (s *Socket) unlockAndKick() {
	kick := !s.dirty && !s.behind && !s.over && s.pending()
	if kick {
		s.dirty = true
	}
	s.mu.Unlock()
	if kick {
		s.shard.add(s)
	}
}

// pending reports whether bytes wait to be written; the caller has locked.
func (s *Socket) pending() bool {
	if s.closeOut {
		return false
	}
	return s.head < len(s.queue) || len(s.pongs) > 0 || s.closing != nil
}

// drop forgets what waits; a chunk that has been taken is not part of it. The
// caller has locked.
func (s *Socket) drop() {
	for _, f := range s.queue[s.head:] {
		s.queued -= len(f)
	}
	s.queue, s.head = nil, 0
}

// pinged answers a ping.
func (s *Socket) pinged(payload []byte) {
	if !s.control() || len(payload) > short {
		return
	}
	s.mu.Lock()
	if len(s.pongs)+headerLen(len(payload))+len(payload) > maxControlQueue {
		s.pongs = s.pongs[:0]
	}
	s.pongs = append(appendHeader(s.pongs, opPong, len(payload)), payload...)
	s.unlockAndKick()
}

// control notes a ping or pong and reports whether the socket continues.
func (s *Socket) control() bool {
	if !s.inside {
		s.mark()
	}
	s.mu.Lock()
	h, closing := s.handler, s.closing != nil
	s.mu.Unlock()
	if closing {
		s.late++
		return false
	}
	if h != nil && !h.Control() {
		s.Finish(int(websocket.StatusPolicyViolation), "too many control frames")
		return false
	}
	return true
}

// Finish starts the close handshake: the close frame goes out after all that is
// queued, or after CloseTimeout, and the connection ends when the peer has
// answered, or after CloseTimeout again. It never blocks. The first call wins;
// from then on Send and Force accept nothing and messages of the peer are
// discarded. A reason is cut at 123 bytes.
func (s *Socket) Finish(code int, reason string) {
	frame, code := closeFrame(code, reason)
	s.finish(frame, code, true)
}

// finish has ours false where coder answers the peer.
func (s *Socket) finish(frame []byte, code int, ours bool) {
	s.mu.Lock()
	if s.closing == nil && !s.over {
		s.closing, s.code, s.ours = frame, code, ours
		s.closeBy = s.hub.now() + int64(s.hub.opts.CloseTimeout)
	}
	s.unlockAndKick()
}

// ErrClosed is what a socket that is over, and a hub that is closed, return.
var ErrClosed = errors.New("ws: closed")

// errLate ends coder's reading of a peer that continues after our close frame.
var errLate = errors.New("ws: the peer does not stop")

// Hub owns sockets: their writers and the sweeper. All methods may be called
// concurrently.
type Hub struct {
	opts   Options
	start  time.Time
	shards []*shard
	next   atomic.Uint64 // shard of the next socket
	stop   chan struct{}
	bufs   sync.Pool     // *[]byte of coalesce bytes
	msgs   sync.Pool     // *[]byte of messageBuffer bytes
	large  chan struct{} // one of each message beyond Options.ReadLimit that is being read or kept

	mu      sync.Mutex
	sockets []*Socket // each knows its place
	closed  bool
	wg      sync.WaitGroup // everything that the hub started; Add under mu
}

func newBuffer(size int) *[]byte {
	b := make([]byte, 0, size)
	return &b
}

// now is the time since the hub started, in nanoseconds; never 0.
func (h *Hub) now() int64 { return int64(time.Since(h.start)) + 1 }

func (h *Hub) remove(s *Socket) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.place < 0 {
		return
	}
	last := len(h.sockets) - 1
	moved := h.sockets[last]
	h.sockets[s.place], moved.place = moved, s.place
	h.sockets[last] = nil
	h.sockets = h.sockets[:last]
	s.place = -1
}

// snapshot appends the sockets to buf.
func (h *Hub) snapshot(buf []*Socket) []*Socket {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append(buf, h.sockets...)
}

// mark notes when the message began that comes next: now, if some of it is here.
func (s *Socket) mark() {
	if s.in.Buffered() > 0 {
		s.began.Store(s.hub.now())
	} else {
		s.began.Store(0)
	}
}

// counts are what a shard's goroutine adds up by itself during a round.
type counts struct{ writes, frames, bytes int64 }

// shard writes for its share of the sockets. A socket that has something to write
// is in the list once; while a peer is behind, a goroutine of its own has the sink
// and the shard leaves it alone.
type shard struct {
	hub *Hub
	try *attempt

	mu      sync.Mutex
	wake    sync.Cond
	list    []*Socket
	stopped bool

	writes, frames, bytes atomic.Int64
	fresh                 counts // of this round, and not yet added
}

// add queues a socket that has been marked dirty.
func (sh *shard) add(s *Socket) {
	sh.mu.Lock()
	sh.list = append(sh.list, s)
	if len(sh.list) == 1 {
		sh.wake.Signal()
	}
	sh.mu.Unlock()
}
