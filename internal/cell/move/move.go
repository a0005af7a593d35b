// Package move moves a tenant from one cell to another.
//
// A move has a point of no return: the change of the tenant's entry in the directory. Until then the old cell has everything,
// and continues with the tenant when the move fails. Nothing is appended while the logs are copied: gateways have let all clients
// of the tenant go and take no others, services have handled all commands, and no timer of the tenant is set.
//
// A move copies what cannot be made again: logs, payloads, snapshots, acknowledgements, the registry, holdings of quotas, and
// the index. Services of the new cell set the timers again when they are woken.
package move

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/cell"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/eventlog/transfer"
	"github.com/waggle-dev/waggle/internal/payload"
	"github.com/waggle-dev/waggle/internal/wake"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// poll is the pause between two looks at queues, which nothing signals.
	poll = 100 * time.Millisecond
	// calm is the number of looks in a row that have to find nothing: a service that has just acknowledged a command may be
	// about to set a timer.
	calm = 3
	// wayBack bounds the steps after a failed move: they have to end when the caller is interrupted.
	wayBack = 30 * time.Second
)

// Cell is one end of a move.
type Cell struct {
	Name id.Name
	Conn *bus.Conn
}

// Move configures a move. All fields are required.
type Move struct {
	Directory *cell.Directory
	Tenant    id.Tenant
	From, To  Cell
	MaxWait   time.Duration // for work in progress; then the move is given up
	Report    func(step string)
}

// Result says what a move has moved.
type Result struct {
	Logs, Objects int
	Events        uint64
	Pause         time.Duration // for which no cell has served the tenant
}

var (
	// errBusy means that the tenant had work in progress for too long.
	errBusy = errors.New("timed out waiting for the tenant's work in progress to end")
	// errGateways means that a gateway has not let the tenant go.
	errGateways = errors.New("timed out waiting for the gateways of the cell to release the tenant")
	// errDiffers means that a copy is not the same as the original.
	errDiffers = errors.New("the copy differs from the original")
)

// Run moves the tenant. After an error that wraps ErrLate the new cell serves the tenant; after any other the old one does.
func (m Move) Run(ctx context.Context) (r Result, err error) {
	p, err := m.Directory.Begin(ctx, m.Tenant, m.To.Name)
	if err != nil {
		return r, err
	}
	begun := time.Now()
	if p.Cell != m.From.Name {
		err = fmt.Errorf("the cell %s serves %s, not %s", p.Cell, m.Tenant, m.From.Name)
	}
	var moved transfer.Census
	if err == nil {
		moved, r.Objects, err = m.carry(ctx, p)
	}
	if err == nil {
		_, err = m.Directory.Finish(ctx, m.Tenant, p)
	}
	if err != nil {
		return r, errors.Join(err, m.back(ctx, p))
	}
	r.Pause, r.Logs, r.Events = time.Since(begun), len(moved), moved.Events()
	m.Report("the new cell serves the tenant")
	if err := rouse(ctx, m.To.Conn, moved, p); err != nil {
		return r, fmt.Errorf("%w: open work waits for its next message: %w", ErrLate, err)
	}
	return r, m.finish(ctx, moved)
}

// carry copies everything, and returns when the copy is complete and the old cell has not changed meanwhile.
func (m Move) carry(ctx context.Context, p cell.Place) (transfer.Census, int, error) {
	if err := m.quiet(ctx, p); err != nil {
		return nil, 0, err
	}
	m.Report("copy the tenant's data")
	if err := remove(ctx, m.To.Conn, m.Tenant); err != nil { // of a move that failed
		return nil, 0, fmt.Errorf("make room in the cell %s: %w", m.To.Name, err)
	}
	copied, err := transfer.Copy(ctx, m.From.Conn, m.To.Conn, m.Tenant)
	if err != nil {
		return nil, 0, err
	}
	objects, err := payload.Copy(ctx, payload.New(m.From.Conn), payload.New(m.To.Conn), m.Tenant)
	if err != nil {
		return nil, 0, err
	}
	for _, s := range kept(m.Tenant) {
		if err := copyStream(ctx, m.From.Conn, m.To.Conn, s); err != nil {
			return nil, 0, err
		}
	}
	m.Report("compare the copy with the original")
	return copied, objects, m.compare(ctx, copied)
}

// compare compares both cells with the census of the copy, and looks for work that has begun meanwhile.
func (m Move) compare(ctx context.Context, copied transfer.Census) error {
	for _, c := range []Cell{m.From, m.To} {
		has, err := transfer.Take(ctx, c.Conn, m.Tenant)
		if err != nil {
			return err
		}
		if !has.Same(copied) {
			return fmt.Errorf("%w: in the cell %s: %v", errDiffers, c.Name, has.Differ(copied))
		}
	}
	n, err := pending(ctx, m.From.Conn, m.Tenant)
	if err == nil && n > 0 {
		err = fmt.Errorf("%w: %d commands and timers", errBusy, n)
	}
	return err
}

// quiet returns when no gateway serves the tenant, and no command and no timer of it is left in the old cell.
func (m Move) quiet(ctx context.Context, p cell.Place) error {
	ctx, cancel := context.WithTimeout(ctx, m.MaxWait)
	defer cancel()
	m.Report("waiting for all gateways to release the tenant")
	if err := m.gateways(ctx, p); err != nil {
		return err
	}
	m.Report("waiting for the tenant's work in progress to end")
	err := m.idle(ctx)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", errBusy, err)
	}
	return err
}

// idle removes the tenant's schedules, and returns when no command and no timer of it is left.
func (m Move) idle(ctx context.Context) error {
	for quiet := 0; quiet < calm; quiet++ {
		for _, s := range subject.TimerServices() {
			if err := m.From.Conn.Purge(ctx, subject.TimerStream(s), subject.TimersSet(s, m.Tenant)); err != nil {
				return err
			}
		}
		n, err := pending(ctx, m.From.Conn, m.Tenant)
		if err != nil {
			return err
		}
		if n > 0 {
			quiet = -1
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d commands and timers are left: %w", n, context.Cause(ctx))
		case <-time.After(poll):
		}
	}
	return nil
}

// gateways waits until each gateway that the old cell or the control cluster knows has carried out the change. A gateway that
// cannot reach the control cluster, but can reach its cell, keeps the move from continuing.
func (m Move) gateways(ctx context.Context, p cell.Place) error {
	local, err := directory.Open(ctx, m.From.Conn)
	if err != nil {
		return fmt.Errorf("%w: %w", errGateways, err)
	}
	defer local.Close() //nolint:contextcheck // ending takes a context of its own
	missing := 0
	err = m.Directory.WaitGateways(ctx, m.From.Name, func(all []cell.Gateway) bool {
		seen := map[id.Name]bool{}
		missing = 0
		for _, g := range all {
			seen[g.Instance] = g.Seen >= p.Revision
			if !seen[g.Instance] {
				missing++
			}
		}
		for _, l := range local.Members(directory.WhatService, id.MustName("gateway")) {
			if _, known := seen[l.Instance]; !known {
				missing++
			}
		}
		return missing == 0
	})
	if err != nil {
		return fmt.Errorf("%w: %d of them: %w", errGateways, missing, err)
	}
	return nil
}

// pending returns the number of commands and due timers of a tenant that services have not handled.
func pending(ctx context.Context, c *bus.Conn, t id.Tenant) (uint64, error) {
	n, err := c.Count(ctx, subject.StreamCommands, subject.CommandsFor(t))
	if err != nil {
		return 0, err
	}
	for _, s := range subject.TimerServices() {
		due, err := c.Count(ctx, subject.TimerStream(s), subject.TimersDue(s, t), subject.TimersSet(s, t))
		if err != nil {
			return 0, err
		}
		n += due
	}
	return n, nil
}

// back lets the old cell serve the tenant again.
func (m Move) back(ctx context.Context, p cell.Place) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wayBack)
	defer cancel()
	return Abandon(ctx, m.Directory, m.Tenant, p, m.From.Conn)
}

// Abandon ends a move without a result: the old cell, which the connection leads to, serves the tenant again. It also ends a
// move whose process has died; if that process still runs, it can not finish the move any more.
func Abandon(ctx context.Context, d *cell.Directory, t id.Tenant, p cell.Place, old *bus.Conn) error {
	if _, err := d.Abandon(ctx, t, p); err != nil {
		return fmt.Errorf("give the move of %s up: %w", t, err)
	}
	logs, err := transfer.Take(ctx, old, t)
	if err != nil {
		return err
	}
	return rouse(ctx, old, logs, p)
}

// rouse makes the services of a cell read all logs: they set their timers again and continue what is open.
func rouse(ctx context.Context, c *bus.Conn, logs transfer.Census, p cell.Place) error {
	sender := command.NewSender(c)
	for log, sum := range logs {
		if sum.Ended {
			continue
		}
		if err := wake.Log(ctx, sender, log, fmt.Sprintf("move-%d", p.Revision)); err != nil {
			return err
		}
	}
	return nil
}

// ErrLate means that the tenant has moved, and that something remains to be done.
var ErrLate = errors.New("the tenant has moved")

// finish removes the tenant's data from the old cell, unless a log has changed since it was copied.
func (m Move) finish(ctx context.Context, moved transfer.Census) error {
	m.Report("remove the tenant's data from the old cell")
	has, err := transfer.Take(ctx, m.From.Conn, m.Tenant)
	if err == nil && !has.Same(moved) {
		err = fmt.Errorf("logs of the old cell have changed since they were copied, and stay there: %v", has.Differ(moved))
	}
	if err == nil {
		err = remove(ctx, m.From.Conn, m.Tenant)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLate, err)
	}
	return nil
}

// remove removes everything of a tenant from a cell that does not serve it.
func remove(ctx context.Context, c *bus.Conn, t id.Tenant) error {
	if err := transfer.Remove(ctx, c, t); err != nil {
		return err
	}
	if _, err := payload.New(c).DeleteTenant(ctx, t); err != nil {
		return err
	}
	for _, s := range kept(t) {
		if err := s.remove(ctx, c); err != nil {
			return err
		}
	}
	for _, s := range subject.TimerServices() {
		if err := c.Purge(ctx, subject.TimerStream(s), subject.TimersSet(s, t)); err != nil {
			return err
		}
	}
	return nil
}

// part is the part of a stream that belongs to a tenant. The last message of each subject counts.
type part struct {
	stream, filter string
	marked         bool // the stream refuses purges: markers of a bucket stand for removed keys
}

// kept returns what a move copies beside logs and payloads. Holdings of connections are those of gateways, and stay.
func kept(t id.Tenant) []part {
	bucket := func(name string, marked bool) part {
		return part{subject.BucketStream(name), subject.BucketTenant(name, t), marked}
	}
	all := []part{
		{subject.StreamIndex, subject.IndexTenant(t), false},
		bucket(subject.BucketAcks, false), bucket(subject.BucketRegistry, true), bucket(subject.BucketFolds, true),
	}
	connections := subject.QuotaBucket(id.MustName("connections"))
	for _, name := range subject.QuotaBuckets() {
		if name != connections {
			all = append(all, bucket(name, false))
		}
	}
	return all
}

// Headers of messages of buckets.
const (
	headerOperation = "KV-Operation"
	headerMarker    = "Nats-Marker-Reason"
	headerTTL       = "Nats-TTL"
)

// isMarker reports whether a message stands for a removed key.
func isMarker(m *bus.Message) bool {
	return m.Header.Get(headerOperation) != "" || m.Header.Get(headerMarker) != ""
}

// copyStream copies a part of a stream, in its order.
func copyStream(ctx context.Context, from, to *bus.Conn, s part) error {
	return from.Each(ctx, s.stream, true, func(m *bus.Message) error {
		if isMarker(m) {
			return nil
		}
		out := &nats.Msg{Subject: m.Subject, Data: m.Data, Header: nats.Header{}}
		if ttl := m.Header.Get(headerTTL); ttl != "" {
			out.Header.Set(headerTTL, ttl)
		}
		if _, err := to.JS().PublishMsg(ctx, out); err != nil {
			return fmt.Errorf("copy %s: %w", m.Subject, err)
		}
		return nil
	}, s.filter)
}

// remove removes the part.
func (s part) remove(ctx context.Context, c *bus.Conn) error {
	if !s.marked {
		return c.Purge(ctx, s.stream, s.filter)
	}
	return c.Each(ctx, s.stream, true, func(m *bus.Message) error {
		if isMarker(m) {
			return nil
		}
		marker := &nats.Msg{Subject: m.Subject, Header: nats.Header{headerOperation: {"DEL"}}}
		_, err := c.JS().PublishMsg(ctx, marker)
		return err
	}, s.filter)
}
