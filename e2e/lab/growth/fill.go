package growth

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/eventlog"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// writers is how many logs are filled at once.
const writers = 32

// Template is what a real session wrote: the events that open it, and those of one run.
type Template struct {
	opening, run []event.Event
}

// Learn reads a session with one run.
func Learn(ctx context.Context, s *eventlog.Store, session string) (*Template, error) {
	t := &Template{}
	log := logOf(session)
	err := s.Read(ctx, log, eventlog.Cursor{}, func(e *eventlog.Entry) error {
		if len(t.run) == 0 && e.Type != event.MessageReceived {
			t.opening = append(t.opening, e.Event)
		} else {
			t.run = append(t.run, e.Event)
		}
		return nil
	})
	if err == nil && (len(t.opening) == 0 || len(t.run) < 2) {
		err = fmt.Errorf("%s has %d events before its first run and %d in it", session, len(t.opening), len(t.run))
	}
	return t, err
}

func logOf(session string) subject.Log {
	return subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal(session)}
}

// Fill makes sessions with the names, each of at least as many events as wanted, with whole runs.
func (t *Template) Fill(ctx context.Context, s *eventlog.Store, names []string, events int) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for _, name := range names {
		g.Go(func() error { return t.write(ctx, s, logOf(name), events) })
	}
	return g.Wait()
}

func (t *Template) write(ctx context.Context, s *eventlog.Store, log subject.Log, events int) error {
	w := s.Writer(log, nil)
	if err := w.Append(ctx, func() ([]event.Event, error) { return t.part(log, t.opening, 0), nil }); err != nil {
		return err
	}
	for n := 1; int(w.Seq()) < max(events, len(t.opening)+1); n++ { //nolint:gosec // at most a million
		written, at := t.part(log, t.run, n), w.Seq()
		err := w.Append(ctx, func() ([]event.Event, error) { return written[w.Seq()-at:], nil })
		if err != nil {
			return err
		}
	}
	return nil
}

// ids are the parts of identifiers by which runs, messages and calls differ.
var ids = regexp.MustCompile(`[0-9a-f]{12}(?:_[0-9]+)?\b|_[0-9]{6}\b`)

// part returns the events for another log, as those of its n-th run.
func (t *Template) part(log subject.Log, events []event.Event, n int) []event.Event {
	out := make([]event.Event, len(events))
	for i, e := range events {
		e.Subject, e.ID, e.Sequence, e.From = log.Name(), fmt.Sprintf("%d.%d", n, i), 0, 0
		e.Time = time.Now().UTC().Truncate(time.Millisecond)
		e.Data = ids.ReplaceAllFunc(bytes.Clone(e.Data), func(b []byte) []byte {
			if b[0] == '_' {
				return fmt.Appendf(nil, "_%06d", n%1_000_000)
			}
			return fmt.Appendf(nil, "%s%08x%s", b[:4], n, b[12:])
		})
		out[i] = e
	}
	return out
}

const (
	// AgentPrefix begins the names of registered agents.
	AgentPrefix = "Grown "
	// AgentCapability is one that all of them have.
	AgentCapability = "weld"
)

// AgentName returns the name of a registered agent. One name in ten thousand is shared.
func AgentName(n int) string { return fmt.Sprintf("%s%05d", AgentPrefix, n%10_000) }

// Register writes agents into the registry, as the task service remembers agents that were connected once.
func Register(ctx context.Context, conn *bus.Conn, from, to int) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for n := from; n < to; n++ {
		g.Go(func() error {
			p := cmd.Participant{
				Kind: cmd.ParticipantAgent, Tenant: id.DefaultTenant, ID: fmt.Sprint("grown-", n), Name: AgentName(n), Status: cmd.StatusInactive,
				Capabilities: []string{AgentCapability, fmt.Sprint("c", n%2)}, Description: strings.Repeat("x", 200),
			}
			raw, err := json.Marshal(p)
			if err != nil {
				return fmt.Errorf("encode an agent: %w", err)
			}
			key := subject.RegistryKey(p.Tenant, cmd.WhatAgent, id.EntityFromExternal(p.ID))
			_, err = conn.JS().Publish(ctx, subject.BucketSubject(subject.BucketRegistry, key), raw)
			return err
		})
	}
	return g.Wait()
}
