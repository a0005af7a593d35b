package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// pingEvery is the pause between two pings of the workers.
	pingEvery = time.Second
	// missedPings in a row mean that no worker runs: one ping may fall between the end of
	// a worker and the start of its successor.
	missedPings = 3
)

// pingWorkers pings the workers until the gateway stops.
func (s *Server) pingWorkers() {
	t := time.NewTicker(pingEvery)
	defer t.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-t.C:
			s.checkWorkers()
		}
	}
}

// checkWorkers pings once if any client is connected. An idle installation sends no pings.
func (s *Server) checkWorkers() {
	s.mu.Lock()
	connected := len(s.conns) > 0
	s.mu.Unlock()
	if connected {
		s.pingWorker()
		return
	}
	s.workers.missed = 0
	s.workers.missing.Store(false)
}

// pingWorker pings once. It sends a bare request, because a trace each second would be noise. A
// timeout proves nothing while a worker is listed: the worker may be busy, or the bus down. A
// worker of the previous version is listed and answers no pings.
func (s *Server) pingWorker() {
	ctx, cancel := context.WithTimeout(s.ctx, pingEvery)
	defer cancel()
	w := &s.workers
	_, err := s.dep.Conn.NATS().RequestWithContext(ctx, subject.RPC(command.Worker, command.PingWorker), nil)
	listed := len(s.dep.Directory.Members(directory.WhatService, command.Worker)) > 0
	switch {
	case err == nil:
		w.answered, w.missed = true, 0
		w.missing.Store(false)
		return
	case errors.Is(err, nats.ErrNoResponders) && (w.answered || !listed), errors.Is(err, context.DeadlineExceeded) && !listed && s.dep.Conn.Up():
		w.missed++
	}
	if w.missed >= missedPings {
		w.missing.Store(true)
	}
}
