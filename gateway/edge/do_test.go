package edge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/payload"
	"github.com/waggle-dev/waggle/internal/sight"
	wire "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// sending is an edge over a bus of its own, on which what is sent can be read.
type sending struct {
	*edge.Edge

	read func() []wire.Command
}

func startSending(t *testing.T, rules ...edge.Rule) sending {
	t.Helper()
	conn := bustest.Single(t)
	log, err := eventlog.New(conn, eventlog.Options{Logger: zerolog.Nop()})
	require.NoError(t, err)
	t.Cleanup(log.Close)
	sub, err := conn.NATS().SubscribeSync(subject.StreamSubjects(subject.StreamCommands)[0])
	require.NoError(t, err)
	require.NoError(t, conn.NATS().Flush())
	return sending{read: func() (all []wire.Command) {
		require.NoError(t, conn.NATS().Flush())
		for {
			m, err := sub.NextMsg(0)
			if err != nil {
				return all
			}
			var c wire.Command
			require.NoError(t, json.Unmarshal(m.Data, &c))
			all = append(all, c)
		}
	}, Edge: &edge.Edge{
		Source: "test", Clock: time.Now, Logger: zerolog.Nop(), Bus: conn, Commands: command.NewSender(conn), Log: log,
		Streams: &stream.Source{Log: log, Loader: stream.NewLoader(payload.New(conn), zerolog.Nop()), Logger: zerolog.Nop(), Clock: time.Now},
		Sight:   &sight.Sight{Policy: access.Policy{}, Log: log}, Rules: rules,
	}}
}

// session makes a session of ann that asks whether the call of a tool may run.
func (s sending) session(t *testing.T) subject.Log {
	t.Helper()
	l := subject.Log{Tenant: tenant(t, "red"), Kind: id.KindSession, Entity: id.EntityFromExternal(edge.NewID())}
	var once []event.Event
	for i, d := range []event.Data{event.SessionCreatedData{Principal: "ann"}, event.InputRequestedData{InputID: "q", Scope: event.ScopeTool, CallID: "c", Tool: "pay"}} {
		e, err := event.New(l, fmt.Sprint("e", i), "test", time.Now(), d)
		require.NoError(t, err)
		once = append(once, e)
	}
	require.NoError(t, s.Log.Writer(l, func(*eventlog.Entry) {}).Append(t.Context(), func() (out []event.Event, err error) {
		out, once = once, nil
		return out, nil
	}))
	return l
}

func (s sending) client(t *testing.T, subject string, roles ...auth.Role) *edge.Client {
	t.Helper()
	return s.Client(auth.Principal{Subject: subject, Tenant: tenant(t, "red"), Roles: roles}, edge.Origin{Protocol: "test"})
}

func to(l subject.Log, verb id.Name, data string) wire.Command {
	return wire.Command{ID: edge.NewID(), Service: wire.Pipeline, Verb: verb, Tenant: l.Tenant, Key: l.Entity, Data: json.RawMessage(data)}
}

// TestAllCommandsOrNone: what refuses one command of a message refuses the message, and nothing of it is sent.
func TestAllCommandsOrNone(t *testing.T) {
	t.Parallel()
	errNoReplan := fault.Newf(fault.Forbidden, "Plans are not changed here.")
	s := startSending(t, func(_ context.Context, _ *edge.Client, a *edge.Act) error {
		if a.Verb == wire.Replan {
			return errNoReplan
		}
		return nil
	})
	l := s.session(t)
	message := to(l, wire.SendMessage, `{}`)
	elsewhere, long := message, message
	elsewhere.ID, elsewhere.Tenant = edge.NewID(), tenant(t, "blue")
	long.ID, long.Data = edge.NewID(), json.RawMessage(`"`+strings.Repeat("x", edge.MaxCommand)+`"`)
	for name, c := range map[string]struct {
		who    *edge.Client
		second wire.Command
		code   fault.Code
	}{
		"a viewer acts":               {s.client(t, "ann", auth.RoleViewer), to(l, wire.SendMessage, `{}`), fault.Forbidden},
		"another tenant":              {s.client(t, "ann", auth.RoleUser), elsewhere, fault.Forbidden},
		"a session of another":        {s.client(t, "ben", auth.RoleUser), to(l, wire.SendMessage, `{}`), fault.SessionNotFound},
		"too much text":               {s.client(t, "ann", auth.RoleUser), long, fault.InvalidField},
		"a rule of the installation":  {s.client(t, "ann", auth.RoleUser), to(l, wire.Replan, `{}`), fault.Forbidden},
		"an approval of another call": {s.client(t, "ann", auth.RoleUser), to(l, wire.Answer, `{"input_id":"q","digest":"of another call","approved":true}`), fault.InputNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			first := message
			first.ID = edge.NewID()
			err := c.who.Do(t.Context(), "", first, c.second)
			require.ErrorIs(t, err, fault.New(c.code))
			require.Empty(t, s.read())
		})
	}
}

// TestCommandsAreOfTheirClient: commands leave in their order, with the principal of the client whatever they said before.
func TestCommandsAreOfTheirClient(t *testing.T) {
	t.Parallel()
	s := startSending(t)
	l := s.session(t)
	first, second := to(l, wire.Answer, `{"input_id":"q"}`), to(l, wire.SendMessage, `{}`)
	first.Principal, first.Operator, first.Source = "somebody else", true, "elsewhere"
	require.NoError(t, s.client(t, "ann", auth.RoleUser).Do(t.Context(), "reply.to.me", first, second))
	sent := s.read()
	require.Len(t, sent, 2)
	for i, want := range []wire.Command{first, second} {
		require.Equal(t, want.ID, sent[i].ID)
		require.Equal(t, []any{"ann", false, "test", "reply.to.me"}, []any{sent[i].Principal, sent[i].Operator, sent[i].Source, sent[i].ReplyTo})
		require.False(t, sent[i].Time.IsZero())
	}
	require.NoError(t, s.client(t, "ann", auth.RoleViewer).Do(t.Context(), "", to(l, wire.Ack, `{}`)), "a viewer acknowledges")
	require.Len(t, s.read(), 1)
}

// TestRequestsThatChangeKeepTheRules: one that only reads does not.
func TestRequestsThatChangeKeepTheRules(t *testing.T) {
	t.Parallel()
	errClosed := fault.Newf(fault.Forbidden, "Closed.")
	var acts []edge.Act
	s := startSending(t, func(_ context.Context, _ *edge.Client, a *edge.Act) error {
		acts = append(acts, *a)
		return errClosed
	})
	q := edge.Request{Service: wire.Team, Verb: wire.FoundTeam, In: struct{}{}, Changes: true, Data: json.RawMessage(strings.Repeat("x", 2*edge.MaxCommand))}
	require.ErrorIs(t, s.client(t, "ann", auth.RoleUser).Ask(t.Context(), q, nil), errClosed)
	require.Len(t, acts, 1)
	require.Equal(t, []any{true, wire.FoundTeam, "ann"}, []any{acts[0].Request, acts[0].Verb, acts[0].Principal})
	require.ErrorIs(t, s.client(t, "ann", auth.RoleViewer).Ask(t.Context(), q, nil), fault.New(fault.Forbidden))
	require.Len(t, acts, 1, "a viewer changes nothing, and no later rule is asked")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.client(t, "ann", auth.RoleViewer).Ask(ctx, edge.Request{Service: wire.Team, Verb: wire.ShowTeam, In: struct{}{}}, nil)
	require.False(t, errors.Is(err, errClosed) || errors.Is(err, fault.New(fault.Forbidden)), "%v", err)
	require.Len(t, acts, 1)
}
