package transfer_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/eventlog/transfer"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, bustest.Leftovers()...) }

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

var red, blue = tenant("red"), tenant("blue")

func tenant(s string) id.Tenant {
	t, err := id.ParseTenant(s)
	if err != nil {
		panic(err)
	}
	return t
}

func logOf(t id.Tenant, kind id.Kind, name string) subject.Log {
	return subject.Log{Tenant: t, Kind: kind, Entity: id.EntityFromExternal(name)}
}

// put stores an event of a log as a writer does.
func put(t require.TestingT, c *bus.Conn, log subject.Log, seq uint64, data string) {
	ev := event.Event{ID: fmt.Sprintf("e%d", seq), Type: event.Notice, Subject: log.Name(), Sequence: seq, Time: time.UnixMilli(int64(seq)), Data: []byte(data)} //nolint:gosec // small
	raw, err := ev.MarshalJSON()
	require.NoError(t, err)
	_, err = c.JS().PublishMsg(context.Background(), &nats.Msg{Subject: log.Event(), Data: raw, Header: nats.Header{
		event.HeaderSeq: {fmt.Sprint(seq)}, event.HeaderType: {string(event.Notice)}, event.HeaderMsgID: {fmt.Sprintf("%s:e%d", log, seq)},
	}})
	require.NoError(t, err)
}
