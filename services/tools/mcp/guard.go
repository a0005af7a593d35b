package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// maxLine bounds one message of a server. The results of honest servers are below 10 MiB; a longer line ends the
	// connection, because its claim to belong to a call cannot be trusted.
	maxLine = 16 << 20
	// floodBurst and floodRate bound a server's unasked messages: a bucket of this many bytes, refilled at this rate, and by
	// one line for each call. A server that constantly logs 200 lines a second stays within it.
	floodBurst = 2 * maxLine
	floodRate  = 256 << 10
	// messageCost is charged for a message in addition to its bytes: approximately its memory until it is handled.
	messageCost = 1 << 10
	// guardBlock is the size of the reads from a server.
	guardBlock = 64 << 10
)

var (
	errLineTooLong = fmt.Errorf("a message is longer than %d bytes", maxLine)
	errFlood       = errors.New("the server's response exceeds the limit")
)

// guard filters a server's output. It passes lines that look like messages and drops the others (banners and debug output
// are a common mistake). It ends the stream when a line is too long or the server floods. It holds no more than one block.
type guard struct {
	in      *bufio.Reader
	inLine  bool // within a message
	length  int  // bytes of the message so far
	dropped func(line []byte)
	ended   chan struct{} // closed at the first error
	once    sync.Once
	*budget
}

func newGuard(src io.Reader, now func() time.Time, dropped func(line []byte)) *guard {
	return &guard{in: bufio.NewReaderSize(src, guardBlock), dropped: dropped, ended: make(chan struct{}), budget: newBudget(now)}
}

// Read returns bytes of the next message.
func (g *guard) Read(p []byte) (int, error) {
	n, err := g.read(p)
	if err != nil {
		g.once.Do(func() { close(g.ended) })
	}
	return n, err
}

func (g *guard) read(p []byte) (int, error) {
	for !g.inLine {
		if err := g.lineStart(); err != nil {
			return 0, err
		}
	}
	if _, err := g.in.Peek(1); err != nil {
		return 0, err
	}
	part, _ := g.in.Peek(min(g.in.Buffered(), len(p)))
	if i := bytes.IndexByte(part, '\n'); i >= 0 {
		part, g.inLine = part[:i+1], false
	}
	n := copy(p, part)
	_, _ = g.in.Discard(n)
	if g.length += n; g.length > maxLine {
		return 0, errLineTooLong
	}
	return n, g.charge(n)
}

// Close does nothing: the output of a program that has ended is read to its end, and its session closes it.
func (g *guard) Close() error { return nil }

// lineStart checks the beginning of the next line and skips the line unless it begins like a message: with an object, or an
// array of objects.
func (g *guard) lineStart() error {
	head, err := g.in.Peek(1)
	if err != nil {
		return err
	}
	switch head[0] {
	case ' ', '\t', '\r', '\n':
		head, _ = g.in.Peek(g.in.Buffered())
		n, _ := g.in.Discard(len(head) - len(bytes.TrimLeft(head, " \t\r\n")))
		return g.charge(n)
	case '{':
		g.inLine = true
	case '[':
		if head, err = g.in.Peek(2); err != nil {
			return err
		}
		g.inLine = head[1] == '{'
	}
	if !g.inLine {
		return g.drop()
	}
	g.length = 0
	return g.charge(messageCost)
}

// drop skips a line that is not a message.
func (g *guard) drop() error {
	for first := true; ; first = false {
		part, err := g.in.ReadSlice('\n')
		cost := len(part)
		if first {
			g.dropped(part)
			cost += messageCost
		}
		if err := g.charge(cost); err != nil {
			return err
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// budget is what a server may send. It is safe for concurrent use.
type budget struct {
	mu     sync.Mutex
	now    func() time.Time
	tokens float64
	filled time.Time
}

func newBudget(now func() time.Time) *budget {
	return &budget{now: now, tokens: floodBurst, filled: now()}
}

// credit allows for the answer to one more call.
func (b *budget) credit() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(floodBurst, b.tokens+maxLine)
}

func (b *budget) charge(n int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.tokens = min(floodBurst, b.tokens+now.Sub(b.filled).Seconds()*floodRate) - float64(n)
	b.filled = now
	if b.tokens < 0 {
		return errFlood
	}
	return nil
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
