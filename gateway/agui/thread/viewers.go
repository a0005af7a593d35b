package thread

import (
	"context"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// grace is how long a run without a viewer waits for one to come back.
const grace = 5 * time.Second

// viewers count the streams of each thread at this gateway, for runs that end with their last viewer.
type viewers struct {
	g *binding.Gateway

	mu sync.Mutex
	of map[subject.Log]*watched
}

// watched is a thread with streams, or with a run that is about to end.
type watched struct {
	streams int
	run     string // that ends with its last viewer; empty = none does
	stop    func(context.Context)
}

func newViewers(g *binding.Gateway) *viewers { return &viewers{g: g, of: map[subject.Log]*watched{}} }

// enter counts a stream. stop ends its run, which has to be done when the last viewer has gone; nil = it continues.
func (v *viewers) enter(log subject.Log, run string, stop func(context.Context)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	w := v.of[log]
	if w == nil {
		w = &watched{}
		v.of[log] = w
	}
	w.streams++
	if stop != nil {
		w.run, w.stop = run, stop
	}
}

// leave notes the end of a stream: with its run, or because its client has gone.
func (v *viewers) leave(log subject.Log, run string, over, gone bool) {
	v.mu.Lock()
	w := v.of[log]
	w.streams--
	if over && run == w.run {
		w.run, w.stop = "", nil
	}
	alone := w.streams == 0 && w.stop != nil && gone
	if w.streams == 0 && !alone {
		delete(v.of, log)
	}
	v.mu.Unlock()
	if alone {
		v.g.Later(func() { v.expire(log, w) })
	}
}

// expire ends the run of a thread unless a viewer comes back in time.
func (v *viewers) expire(log subject.Log, w *watched) {
	select {
	case <-time.After(grace):
	case <-v.g.Life.Done():
		return
	}
	v.mu.Lock()
	stop := w.stop
	if v.of[log] != w || w.streams > 0 {
		stop = nil
	} else {
		delete(v.of, log)
	}
	v.mu.Unlock()
	if stop != nil {
		stop(v.g.Life)
	}
}
