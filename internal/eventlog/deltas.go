package eventlog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

const (
	// maxWaiting bounds the text in bytes that waits while an append is in flight. A model writes about 1 KB/s, so it
	// covers an outage of a minute.
	maxWaiting = 64 << 10
	// maxDelta bounds the text of one event in bytes. A JSON escape takes at most six bytes for one, and a stored
	// message may have 256 KB.
	maxDelta = 32 << 10
)

var errDeltasClosed = errors.New("text written after Close")

// Deltas appends text as a sequence of events. It merges text written during an append, and in the pause after it, into the
// next event: a busier bus gets fewer and longer events. One goroutine may write.
type Deltas struct {
	w     *Writer
	build func(n int, text string) (event.Event, error)
	check func() error
	pause time.Duration
	done  chan struct{}
	over  chan struct{} // closed by end
	end   func()        // ends the pause, and all later ones: no more text comes, or it cannot be appended

	mu      sync.Mutex
	changed *sync.Cond
	waiting []byte
	closed  bool
	err     error
}

// Deltas starts appending text with the Writer, which belongs to the Deltas until Close returns. build makes the n-th
// event (1, 2, ...) of the text, once for each n. check runs after every foreign entry that passes observe; its error
// ends the Deltas unchanged, before another append. build, check and observe run on a goroutine of the Deltas. When
// ctx ends, its error ends the Deltas. The first event is appended at once, and each further one at the earliest a pause after
// the start of the one before, but not later than Close.
func (w *Writer) Deltas(ctx context.Context, pause time.Duration, build func(n int, text string) (event.Event, error), check func() error) *Deltas {
	d := &Deltas{w: w, build: build, check: check, pause: pause, done: make(chan struct{}), over: make(chan struct{})}
	d.end = sync.OnceFunc(func() { close(d.over) })
	d.changed = sync.NewCond(&d.mu)
	w.s.short.Go(func() { d.run(ctx) })
	return d
}

// Write queues text for appending. It blocks only while 64 KiB are waiting, and returns the first error of any append
// so far.
func (d *Deltas) Write(text string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(text) > 0 && d.err == nil {
		if d.closed {
			return errDeltasClosed
		}
		room := maxWaiting - len(d.waiting)
		if room < utf8.UTFMax && len(text) > room {
			d.changed.Wait()
			continue
		}
		n := clipText(text, room)
		d.waiting = append(d.waiting, text[:n]...)
		text = text[n:]
		d.changed.Broadcast()
	}
	return d.err
}

// Close appends the waiting text, releases the Writer and returns the first error. It is idempotent.
func (d *Deltas) Close() error {
	d.mu.Lock()
	d.closed = true
	d.changed.Broadcast()
	d.mu.Unlock()
	d.end()
	<-d.done
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

func (d *Deltas) run(ctx context.Context) {
	defer close(d.done)
	stop := context.AfterFunc(ctx, func() { d.fail(context.Cause(ctx)) })
	defer stop()
	for n := 1; ; n++ {
		text, began := d.next(), time.Now()
		if text == "" {
			return
		}
		if err := d.append(ctx, n, text); err != nil {
			d.fail(err)
			return
		}
		d.rest(d.pause - time.Since(began))
	}
}

// rest lets text gather.
func (d *Deltas) rest(pause time.Duration) {
	if pause <= 0 {
		return
	}
	enough := time.NewTimer(pause)
	defer enough.Stop()
	select {
	case <-enough.C:
	case <-d.over:
	}
}

// next waits for text and takes as much as fits into one event. It returns "" after the end of the text or an error.
func (d *Deltas) next() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.waiting) == 0 && !d.closed && d.err == nil {
		d.changed.Wait()
	}
	if d.err != nil || len(d.waiting) == 0 {
		return ""
	}
	n := clipText(string(d.waiting), maxDelta)
	text := string(d.waiting[:n])
	d.waiting = append(d.waiting[:0], d.waiting[n:]...)
	d.changed.Broadcast()
	return text
}

func (d *Deltas) append(ctx context.Context, n int, text string) error {
	ev, err := d.build(n, text)
	if err != nil {
		return fmt.Errorf("build event %d of the text: %w", n, err)
	}
	id := ev.DedupeID()
	for {
		got, err := d.catchUp(ctx, id)
		if err != nil {
			return err
		}
		if got.own == nil && !got.foreign {
			if got, err = d.w.put(ctx, ev); err != nil {
				return err
			}
		}
		if got.foreign && d.check != nil {
			if err := d.check(); err != nil {
				return err
			}
		}
		if got.own != nil {
			return nil
		}
	}
}

// catchUp syncs the Writer if needed.
func (d *Deltas) catchUp(ctx context.Context, own string) (seen, error) {
	if d.w.synced {
		return seen{}, nil
	}
	got, err := d.w.sync(ctx, own)
	d.w.synced = err == nil
	return got, err
}

// fail keeps the first error and wakes all waiters.
func (d *Deltas) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.err = err
	}
	d.changed.Broadcast()
	d.end()
}

// clipText returns the number of bytes of text that fit into limit without cutting a rune. At least one byte fits if
// limit is utf8.UTFMax or more.
func clipText(text string, limit int) int {
	if len(text) <= limit {
		return len(text)
	}
	n := limit
	for n > 0 && n > limit-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	if n == limit-utf8.UTFMax || n == 0 {
		return limit // not UTF-8: cut anywhere
	}
	return n
}
