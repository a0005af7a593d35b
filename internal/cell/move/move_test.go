package move_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/cell"
	"github.com/waggle-dev/waggle/internal/cell/move"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/eventlog/transfer"
	"github.com/waggle-dev/waggle/internal/payload"
	wire "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, bustest.Leftovers()...) }

const maxWait = 60 * time.Second

var a, b = id.MustName("a"), id.MustName("b")

// site is a control cluster and two cells without processes.
type site struct {
	t        testing.TB
	ctx      context.Context //nolint:containedctx // of the test
	dir      *cell.Directory
	from, to *bus.Conn
	red      id.Tenant
	session  subject.Log
}

func newSite(t testing.TB) *site {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	t.Cleanup(cancel)
	d, err := cell.Open(ctx, bustest.Single(t), a)
	require.NoError(t, err)
	t.Cleanup(d.Close)
	red, err := id.ParseTenant("red")
	require.NoError(t, err)
	s := &site{t: t, ctx: ctx, dir: d, from: bustest.Single(t), to: bustest.Single(t), red: red}
	s.session = s.log(id.KindSession, "s")
	return s
}

func (s *site) log(kind id.Kind, name string) subject.Log {
	return subject.Log{Tenant: s.red, Kind: kind, Entity: id.EntityFromExternal(name)}
}

// soon is the timeout of moves that are abandoned.
const soon = 2 * time.Second

// move returns the move of the tenant.
func (s *site) move() move.Move {
	return move.Move{
		Directory: s.dir, Tenant: s.red, From: move.Cell{Name: a, Conn: s.from}, To: move.Cell{Name: b, Conn: s.to},
		MaxWait: maxWait, Report: func(string) {},
	}
}

// append appends a notice to a log of a cell.
func (s *site) append(c *bus.Conn, log subject.Log, n int) {
	s.t.Helper()
	st, err := eventlog.New(c, eventlog.Options{})
	require.NoError(s.t, err)
	defer st.Close()
	require.NoError(s.t, st.Writer(log, nil).Append(s.ctx, func() ([]event.Event, error) {
		ev, err := event.New(log, fmt.Sprintf("e%d", n), "test", time.UnixMilli(int64(n)), event.NoticeData{Message: "x"})
		return []event.Event{ev}, err
	}))
}

// fill gives the tenant something of everything that a move moves, and timers.
func (s *site) fill() *event.ObjectRef {
	s.t.Helper()
	for _, kind := range []id.Kind{id.KindSession, id.KindTask, id.KindMember, id.KindTeam} {
		for n := range 3 {
			s.append(s.from, s.log(kind, "s"), n)
		}
	}
	ref, err := payload.New(s.from).Put(s.ctx, s.session, []byte(`"large"`))
	require.NoError(s.t, err)
	for _, subj := range s.kept() {
		_, err := s.from.JS().PublishMsg(s.ctx, &nats.Msg{Subject: subj, Data: []byte(subj)})
		require.NoError(s.t, err)
	}
	require.NoError(s.t, command.NewSender(s.from).SetTimer(s.ctx, s.timer(), time.Now().Add(time.Hour)))
	return ref
}

func (s *site) timer() subject.Timer {
	return subject.Timer{Service: wire.Session, Tenant: s.red, Key: s.session.Entity, Name: id.MustName("expire")}
}

// kept returns subjects of entries beside the logs.
func (s *site) kept() []string {
	key := func(name, rest string) string { return subject.BucketSubject(name, s.red.String()+"."+rest) }
	return []string{
		key(subject.BucketAcks, "session.s.c1"), key(subject.BucketRegistry, "agent.x"), key(subject.BucketFolds, "session.s"),
		key(subject.QuotaBucket(id.MustName("sessions")), "sessions.p.s"), s.session.Index(),
	}
}

// has returns the messages under the subjects, without markers.
func (s *site) has(c *bus.Conn) (out []string) {
	s.t.Helper()
	look := func(stream, filter string) {
		require.NoError(s.t, c.Each(s.ctx, stream, true, func(m *bus.Message) error {
			if len(m.Data) > 0 {
				out = append(out, string(m.Data))
			}
			return nil
		}, filter))
	}
	for _, name := range []string{subject.BucketAcks, subject.BucketRegistry, subject.BucketFolds, subject.QuotaBucket(id.MustName("sessions"))} {
		look(subject.BucketStream(name), subject.BucketSubject(name, ">"))
	}
	look(subject.StreamIndex, subject.IndexAll)
	return out
}

// commands returns the number of commands of the tenant in a cell.
func (s *site) commands(c *bus.Conn) uint64 {
	s.t.Helper()
	n, err := c.Count(s.ctx, subject.StreamCommands, subject.CommandsFor(s.red))
	require.NoError(s.t, err)
	return n
}

// TestAMoveMovesEverything: logs, payloads, and what cannot be made of them; the new cell is woken, and the old one is empty.
func TestAMoveMovesEverything(t *testing.T) {
	s := newSite(t)
	ref := s.fill()
	before, err := transfer.Take(s.ctx, s.from, s.red)
	require.NoError(t, err)
	r, err := s.move().Run(s.ctx)
	require.NoError(t, err)
	require.Equal(t, 4, r.Logs)
	require.EqualValues(t, 12, r.Events)
	require.Equal(t, 1, r.Objects)
	after, err := transfer.Take(s.ctx, s.to, s.red)
	require.NoError(t, err)
	require.True(t, after.Same(before))
	data, err := payload.New(s.to).Get(s.ctx, s.red, *ref)
	require.NoError(t, err)
	require.Equal(t, `"large"`, string(data))
	require.Equal(t, s.kept(), s.has(s.to))
	require.EqualValues(t, 5, s.commands(s.to), "two for a session, one for each other log")

	left, err := transfer.Take(s.ctx, s.from, s.red)
	require.NoError(t, err)
	require.Empty(t, left)
	require.Empty(t, s.has(s.from))
	n, err := s.from.Count(s.ctx, subject.TimerStream(wire.Session), subject.TimersSet(wire.Session, s.red))
	require.NoError(t, err)
	require.Zero(t, n)
	p, err := s.dir.Look(s.ctx, s.red)
	require.NoError(t, err)
	require.Equal(t, b, p.Cell)
	require.False(t, p.Moving())
}

// requireBack requires that the old cell serves the tenant with all its data, and that its services were woken.
func (s *site) requireBack(before transfer.Census, commands uint64) {
	s.t.Helper()
	p, err := s.dir.Look(s.ctx, s.red)
	require.NoError(s.t, err)
	require.Equal(s.t, a, p.Cell)
	require.False(s.t, p.Moving())
	after, err := transfer.Take(s.ctx, s.from, s.red)
	require.NoError(s.t, err)
	require.True(s.t, after.Same(before))
	require.EqualValues(s.t, commands, s.commands(s.from))
}

// TestAMoveWaitsForCommands and is given up if they are not handled in time.
func TestAMoveWaitsForCommands(t *testing.T) {
	s := newSite(t)
	s.fill()
	before, err := transfer.Take(s.ctx, s.from, s.red)
	require.NoError(t, err)
	require.NoError(t, command.NewSender(s.from).Send(s.ctx, wire.Command{
		ID: "c1", Service: wire.Worker, Verb: wire.Resume, Tenant: s.red, Key: s.session.Entity, Source: "test",
	}))
	m := s.move()
	m.MaxWait = 3 * soon // the gateways are asked before
	_, err = m.Run(s.ctx)
	require.ErrorContains(t, err, "work in progress")
	s.requireBack(before, 1+5)
}

// TestAMoveWaitsForEveryGateway: for one that has not seen the move, and for one that the control cluster does not know.
func TestAMoveWaitsForEveryGateway(t *testing.T) {
	for name, join := range map[string]func(*site){
		"that has not seen the move": func(s *site) {
			_, err := s.dir.Join(s.ctx, a, id.MustName("g"), "http://127.0.0.1:1")
			require.NoError(s.t, err)
		},
		"that cannot reach the control cluster": func(s *site) {
			local, err := directory.Open(s.ctx, s.from)
			require.NoError(s.t, err)
			s.t.Cleanup(local.Close)
			_, err = local.Join(s.ctx, directory.Member{What: directory.WhatService, Name: id.MustName("gateway"), Instance: id.MustName("g")})
			require.NoError(s.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.fill()
			before, err := transfer.Take(s.ctx, s.from, s.red)
			require.NoError(t, err)
			join(s)
			m := s.move()
			m.MaxWait = soon
			_, err = m.Run(s.ctx)
			require.ErrorContains(t, err, "to release the tenant")
			s.requireBack(before, 5)
		})
	}
}

// TestAChangeDuringTheCopyEndsTheMove, and a second move replaces the copy of the first.
func TestAChangeDuringTheCopyEndsTheMove(t *testing.T) {
	s := newSite(t)
	s.fill()
	m := s.move()
	m.Report = func(step string) {
		if step == "compare the copy with the original" {
			s.append(s.from, s.session, 7)
		}
	}
	_, err := m.Run(s.ctx)
	require.ErrorContains(t, err, "differs from the original")
	now, err := transfer.Take(s.ctx, s.from, s.red)
	require.NoError(t, err)
	s.requireBack(now, 5)
	require.NoError(t, s.from.JS().DeleteStream(s.ctx, subject.StreamCommands)) // in the place of services that handle them
	bustest.Bootstrap(t, s.from, bus.DefaultTopology())
	r, err := s.move().Run(s.ctx)
	require.NoError(t, err)
	require.EqualValues(t, 13, r.Events)
}

// TestALateEventIsNotRemoved: the old cell keeps logs that have changed after the copy, and the mover says so.
func TestALateEventIsNotRemoved(t *testing.T) {
	s := newSite(t)
	s.fill()
	m := s.move()
	m.Report = func(step string) {
		if step == "remove the tenant's data from the old cell" {
			s.append(s.from, s.session, 7)
		}
	}
	_, err := m.Run(s.ctx)
	require.ErrorIs(t, err, move.ErrLate)
	require.ErrorContains(t, err, "red.session.s")
	left, err := transfer.Take(s.ctx, s.from, s.red)
	require.NoError(t, err)
	require.EqualValues(t, 4, left[s.session].Events)
}
