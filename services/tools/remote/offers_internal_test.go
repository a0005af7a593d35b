package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/tools"
)

// shelf offers each tenant the tools that stand in it.
type shelf struct {
	Host
	of map[id.Tenant][]tools.Tool
}

func (s shelf) List(_ context.Context, tenant id.Tenant) ([]tools.Tool, error) {
	return append([]tools.Tool{}, s.of[tenant]...), nil
}

// aTool has every field set.
func aTool(name string) tools.Tool {
	t := tools.Tool{
		Name: name, Server: "files", Title: "Title", Description: "Reads", Kind: tools.KindMCP, Own: "read", IdempotentUnless: "force",
		InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(`{"type":"string"}`),
		ReadOnly: true, Idempotent: true, Agents: true,
	}
	t.Policy.Approval = event.ApprovalWrites
	return t
}

// answers subscribes to what the service answers to a client.
func answers(t *testing.T, nc *nats.Conn) func() toolPage {
	t.Helper()
	sub, err := nc.SubscribeSync("_INBOX.>")
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	return func() (p toolPage) {
		m, err := sub.NextMsg(bustest.MaxWait)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(m.Data, &p), "%s", m.Data)
		return p
	}
}

func TestToolsThatTheCallerHasAreNotSentAgain(t *testing.T) {
	t.Parallel()
	url, _ := bustest.Server(t)
	conn := bustest.Dial(t, url)
	other, err := id.ParseTenant("other")
	require.NoError(t, err)
	host := shelf{of: map[id.Tenant][]tools.Tool{id.DefaultTenant: {aTool("a"), aTool("b")}, other: {aTool("c")}}}
	srv := NewServer(host, Config{Conn: conn, Logger: zerolog.Nop(), MaxCalls: 1})
	require.NoError(t, srv.Start(t.Context()))
	defer srv.Stop()
	c := NewClient(bustest.Dial(t, url))
	sent := answers(t, bustest.Dial(t, url).NATS())
	list := func(tenant id.Tenant, same bool) {
		t.Helper()
		got, err := c.List(t.Context(), tenant)
		require.NoError(t, err)
		require.Equal(t, host.of[tenant], got)
		if len(got) > 0 {
			got[0].Name = "changed by the caller"
		}
		page := sent()
		require.Equal(t, same, page.Same)
		require.Equal(t, same, len(page.Tools) == 0)
	}
	list(id.DefaultTenant, false)
	list(id.DefaultTenant, true)
	list(other, false)
	list(id.DefaultTenant, true)
	host.of[id.DefaultTenant] = []tools.Tool{aTool("a"), aTool("d")}
	list(id.DefaultTenant, false)
	list(id.DefaultTenant, true)
	list(other, true)
}

func TestPagesOfToolsThatChangeAreNotKept(t *testing.T) {
	t.Parallel()
	c, nc := impatient(t)
	pages := make(chan string, 2)
	_, err := nc.Subscribe(subject.RPC(tools.ServiceName, verbList), func(m *nats.Msg) { _ = m.Respond([]byte(<-pages)) })
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	for _, second := range []string{"2", "1"} {
		pages <- `{"tools":[{"name":"a"}],"more":true,"digest":"1"}`
		pages <- fmt.Sprintf(`{"tools":[{"name":"b"}],"digest":%q}`, second)
		got, err := c.List(t.Context(), id.DefaultTenant)
		require.NoError(t, err)
		require.Len(t, got, 2)
		require.Equal(t, second == "1", c.offers.last.Contains(id.DefaultTenant))
	}
	pages <- `{"tools":[],"digest":"9","same":true}`
	_, err = c.List(t.Context(), id.DefaultTenant)
	require.ErrorIs(t, err, fault.New(fault.Internal), "of tools that the client does not have")
}

// Each field that a tool has on the bus counts in the digest of the tools.
func TestEachFieldOfAToolChangesTheDigest(t *testing.T) {
	o := newOffers()
	digest := func(list ...tools.Tool) string {
		d, err := o.digest(id.DefaultTenant, list)
		require.NoError(t, err)
		return d
	}
	was := digest(aTool("a"))
	require.Equal(t, was, digest(aTool("a")))
	require.NotEqual(t, was, digest(aTool("a"), aTool("a")))
	require.NotEqual(t, was, digest())
	for i := range reflect.TypeFor[tools.Tool]().NumField() {
		field := reflect.TypeFor[tools.Tool]().Field(i)
		if strings.HasPrefix(field.Tag.Get("json"), "-") {
			continue
		}
		changed := aTool("a")
		reflect.ValueOf(&changed).Elem().Field(i).SetZero()
		require.NotEqual(t, aTool("a"), changed, "aTool sets every field: %s", field.Name)
		if field.Type.Kind() == reflect.Slice {
			reflect.ValueOf(&changed).Elem().Field(i).SetBytes([]byte("null"))
		}
		require.NotEqual(t, was, digest(changed), field.Name)
		require.Equal(t, was, digest(aTool("a")))
	}
}
