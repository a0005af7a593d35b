// Package servicetest is the base of the services' tests: a NATS server with an event log and a
// directory, and functions that start services on it, send commands to them, and wait for events.
package servicetest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/signature"
	record "github.com/waggle-dev/waggle/proto-schemas/audit"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/ledger"
)

// Rig is an installation without services. All of it ends with the test.
type Rig struct {
	T    testing.TB
	Ctx  context.Context //nolint:containedctx // of the test
	Conn *bus.Conn
	Log  *eventlog.Store
	Dir  *directory.Directory
	Send *command.Sender

	Audit *audit.Writer

	maxWait time.Duration
	running []Component
}

// New returns a rig on a connection. Each of its waits ends after maxWait without an event, and all of
// the test after twice that.
func New(t testing.TB, conn *bus.Conn, maxWait time.Duration) *Rig {
	t.Helper()
	return Within(t, conn, maxWait, 2*maxWait)
}

// Within is New for a test with its own time limit.
func Within(t testing.TB, conn *bus.Conn, maxWait, whole time.Duration) *Rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), whole)
	t.Cleanup(cancel)
	r := &Rig{T: t, Ctx: ctx, Conn: conn, Send: command.NewSender(conn), maxWait: maxWait}
	r.Log = r.Store()
	var err error
	r.Dir, err = directory.Open(ctx, conn)
	require.NoError(t, err)
	t.Cleanup(r.Dir.Close)
	r.Audit, err = audit.New(conn, audit.Options{Logger: zerolog.Nop()})
	require.NoError(t, err)
	t.Cleanup(r.Audit.Close)
	return r
}

// Store returns another store of the event log, as in another process.
func (r *Rig) Store() *eventlog.Store {
	r.T.Helper()
	return r.StoreOn(r.Conn)
}

// StoreOn returns a store of the event log on a separate connection.
func (r *Rig) StoreOn(conn *bus.Conn) *eventlog.Store {
	r.T.Helper()
	s, err := eventlog.New(conn, eventlog.Options{Logger: zerolog.Nop()})
	require.NoError(r.T, err)
	r.T.Cleanup(s.Close)
	return s
}

// Deps are the dependencies of a replica of a service.
func (r *Rig) Deps(name string) ledger.Deps {
	return ledger.Deps{
		Conn: r.Conn, Log: r.Log, Commands: r.Send, Directory: r.Dir, Instance: id.MustName(name), Logger: zerolog.Nop(),
		Signatures: signature.Unchecked(), Audit: r.Audit,
	}
}

// Audited reads the audit log until it has so many records of the actions, and returns them.
func (r *Rig) Audited(n int, actions ...id.Name) (out []record.Record) {
	r.T.Helper()
	require.Eventually(r.T, func() bool {
		out = nil
		for _, action := range actions {
			err := audit.Read(r.Ctx, r.Conn, audit.Query{Action: action.String()}, func(one record.Record) error {
				out = append(out, one)
				return nil
			})
			if err != nil {
				return false
			}
		}
		return len(out) >= n
	}, bustest.MaxWait, 5*time.Millisecond)
	return out
}

// Component is a part of a process.
type Component interface {
	Start(ctx context.Context) error
	Stop()
}

// Run starts the component that a constructor has returned, and stops it with the test.
func (r *Rig) Run(c Component, err error) {
	r.T.Helper()
	require.NoError(r.T, err)
	require.NoError(r.T, c.Start(r.Ctx))
	r.running = append(r.running, c)
	r.T.Cleanup(r.stop)
}

// stop stops all that runs, at the same time: each component waits for its last pull.
func (r *Rig) stop() {
	var wg sync.WaitGroup
	for _, c := range r.running {
		wg.Go(c.Stop)
	}
	wg.Wait()
	r.running = nil
}

// Command sends a command with the data, if that is not nil.
func (r *Rig) Command(c cmd.Command, data any) {
	r.T.Helper()
	if data != nil {
		c.Data = JSON(r.T, data)
	}
	require.NoError(r.T, r.Send.Send(r.Ctx, c))
}

// Taken plays a service that takes the commands of others, in whatever order.
func (r *Rig) Taken(service id.Name) <-chan cmd.Command {
	r.T.Helper()
	out := make(chan cmd.Command, 1000)
	r.Run(command.NewWorkers(r.Conn, command.WorkersConfig{
		Service: service, Instance: id.MustName("tester"), Concurrency: 1, Logger: zerolog.Nop(),
	}, func(_ context.Context, c cmd.Command, _ command.Delivery) error {
		out <- c
		return nil
	}), nil)
	return out
}

// Wait reads a log from its beginning until enough returns true for the events so far, which may be
// none.
func (r *Rig) Wait(l subject.Log, what string, enough func([]*eventlog.Entry) bool) []*eventlog.Entry {
	r.T.Helper()
	ctx, cancel := context.WithCancel(r.Ctx)
	defer cancel()
	silence := time.AfterFunc(r.maxWait, cancel) // a slow machine has events, and a service that hangs has none
	defer silence.Stop()
	var out []*eventlog.Entry
	if enough(out) {
		return out
	}
	for e, err := range r.Log.Tail(ctx, l, eventlog.Cursor{}) {
		silence.Reset(r.maxWait)
		if err != nil {
			require.NoError(r.T, err, "waiting in %s for %s; so far %s", l, what, Told(out))
		}
		if out = append(out, e); enough(out) {
			return out
		}
	}
	require.Fail(r.T, "the log ended", "waiting in %s for %s; so far %s", l, what, Told(out))
	return nil
}

// Until reads a log until it has the n-th event of the type.
func (r *Rig) Until(l subject.Log, typ event.Type, n int) []event.Event {
	r.T.Helper()
	return Events(r.Wait(l, fmt.Sprintf("%s %d times", typ, n), func(all []*eventlog.Entry) bool {
		if len(all) > 0 && all[len(all)-1].Type == typ {
			n--
		}
		return n == 0
	}))
}

// Stored returns a log as it is.
func (r *Rig) Stored(l subject.Log) []*eventlog.Entry {
	r.T.Helper()
	var out []*eventlog.Entry
	require.NoError(r.T, r.Log.Read(r.Ctx, l, eventlog.Cursor{}, func(e *eventlog.Entry) error {
		out = append(out, e)
		return nil
	}))
	return out
}

// All returns the events of a log as it is.
func (r *Rig) All(l subject.Log) []event.Event {
	r.T.Helper()
	return Events(r.Stored(l))
}

// Events returns the events of entries.
func Events(entries []*eventlog.Entry) []event.Event {
	var out []event.Event
	for _, e := range entries {
		out = append(out, e.Event)
	}
	return out
}

// shown is how much of a log the message of a failure lists.
const shown = 60

// Told lists the last events of a log, with those relayed from other logs.
func Told(entries []*eventlog.Entry) string {
	var b strings.Builder
	for _, e := range entries[max(0, len(entries)-shown):] {
		in := event.Unwrap(e.Event)
		fmt.Fprintf(&b, "\n%d %s", e.Sequence, in.Type)
		if in.Via.Route != "" {
			b.WriteString(" of " + in.Via.Route)
		}
		if in.Type == event.TeamStatus {
			b.WriteString(" " + string(in.Data))
		}
	}
	return b.String()
}

// Types returns the types of events.
func Types(events []event.Event) []event.Type {
	out := make([]event.Type, 0, len(events))
	for _, e := range events {
		out = append(out, e.Type)
	}
	return out
}

// Count returns how many of the events are of the type.
func Count(events []event.Event, typ event.Type) int {
	n := 0
	for _, e := range events {
		if e.Type == typ {
			n++
		}
	}
	return n
}

// JSON encodes a value.
func JSON(t testing.TB, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return raw
}
