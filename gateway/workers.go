package gateway

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// pingEvery is the pause between two pings.
	pingEvery = time.Second
	// missedPings in a row mean that no worker runs: one ping may fall between the end of
	// a worker and the start of its successor.
	missedPings = 3
)

// workerWatch tracks whether any worker runs. The lease of a killed worker stays in the directory for half a minute. Its
// subscription ends with its connection, so that a ping finds out at once.
type workerWatch struct {
	conn      *bus.Conn
	directory *directory.Directory
	needed    func() bool // whether any client is connected: an idle installation sends no pings

	missing  atomic.Bool
	answered bool // once
	missed   int  // pings in a row without a responder
}

// gone reports whether clients need a worker and none runs. It is safe for concurrent use.
func (w *workerWatch) gone() bool { return w.missing.Load() }

// run pings the workers until the context ends.
func (w *workerWatch) run(ctx context.Context) {
	t := time.NewTicker(pingEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			w.check(ctx)
		}
	}
}

func (w *workerWatch) check(ctx context.Context) {
	if w.needed() {
		w.ping(ctx)
		return
	}
	w.missed = 0
	w.missing.Store(false)
}

// ping pings once. It sends a bare request, because a trace each second would be noise. A timeout proves nothing while a worker
// is listed: the worker may be busy, or the bus down. A worker of the previous version is listed and answers no pings.
func (w *workerWatch) ping(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pingEvery)
	defer cancel()
	_, err := w.conn.NATS().RequestWithContext(ctx, subject.RPC(command.Worker, command.PingWorker), nil)
	listed := len(w.directory.Members(directory.WhatService, command.Worker)) > 0
	switch {
	case err == nil:
		w.answered, w.missed = true, 0
		w.missing.Store(false)
		return
	case errors.Is(err, nats.ErrNoResponders) && (w.answered || !listed), errors.Is(err, context.DeadlineExceeded) && !listed && w.conn.Up():
		w.missed++
	}
	if w.missed >= missedPings {
		w.missing.Store(true)
	}
}
