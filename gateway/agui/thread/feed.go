package thread

import "sync"

// feed is what brings the log to the response, once the stream has begun. It has a goroutine only while it has something to do:
// most streams are idle, and the stack of a goroutine takes more memory than all else that a stream keeps of its own.
type feed struct {
	mu     sync.Mutex
	works  bool // a goroutine does
	again  bool // something has come since it looked
	closed bool
	done   sync.WaitGroup
}

// wake has look called, on a goroutine of its own: once after the last call of wake at least, and never twice at the same time. A
// look that returns false is the last one. wake does not block.
func (f *feed) wake(look func() bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
	case f.works:
		f.again = true
	default:
		f.works = true
		f.done.Go(func() { f.work(look) })
	}
}

func (f *feed) work(look func() bool) {
	for more := true; more; more = f.more() {
		if !look() {
			return // it works for good: nothing wakes it
		}
	}
}

// more reports whether the goroutine has to look again; otherwise it is over.
func (f *feed) more() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.works = f.again && !f.closed
	f.again = false
	return f.works
}

// close ends the feed. When it returns, nothing of it goes on.
func (f *feed) close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.done.Wait()
}
