package gateway_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/gateway/internal/plain"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// pathPlain is the path of the dialect that docs/how-to-add-a-protocol.md adds.
const pathPlain = "/plain"

// plainly gives the gateway the dialect, with one line of routes.
func plainly(_ *gateway.Config, dep *gateway.Deps) {
	addRoutes(dep, map[string]gateway.Route{pathPlain: gateway.Single(plain.Dialect())})
}

// plainNext returns the next frame.
func (c *client) plainNext() (f plain.Frame) {
	c.t.Helper()
	b, err := c.text()
	require.NoError(c.t, err)
	require.NoError(c.t, json.Unmarshal(b, &f), "%s", b)
	return f
}

// TestAnAddedDialect: a dialect that consists of the steps of the page sends messages, shows
// runs and resumes over a real socket, and its session can be watched in another dialect.
func TestAnAddedDialect(t *testing.T) {
	r := start(t, plainly)
	c := r.open(pathPlain, "")
	hello := c.plainNext()
	require.Equal(t, plain.Hello, hello.Type)

	c.write(frame(fin|opText, []byte(`{"type":"say","text":"Write a haiku"}`)))
	require.Equal(t, wirecmd.Open, r.nextCommand(hello.Session).Verb)
	cmd := r.nextCommand(hello.Session)
	require.Equal(t, "pipeline.send_message", cmd.Service.String()+"."+cmd.Verb.String())
	require.JSONEq(t, `{"content":"Write a haiku"}`, string(cmd.Data))

	r.answers(subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal(hello.Session)}, "An old silent pond", "A frog jumps into it")
	require.Equal(t, plain.Frame{Type: plain.Line, Seq: 2, Text: "An old silent pond"}, c.plainNext())
	require.Equal(t, plain.Frame{Type: plain.Line, Seq: 3, Text: "A frog jumps into it"}, c.plainNext())
	c.write(frame(fin|opText, []byte(`{"type":"shout"}`)))
	require.Equal(t, "UNKNOWN_MESSAGE_TYPE", c.plainNext().Code)

	again := r.open(pathPlain, "session="+hello.Session+"&after=2")
	require.Equal(t, plain.Hello, again.plainNext().Type)
	require.Equal(t, plain.Frame{Type: plain.Line, Seq: 3, Text: "A frog jumps into it"}, again.plainNext())

	other := r.open("/ws", "session="+hello.Session+"&after=2")
	other.ready()
	require.Equal(t, "A frog jumps into it", other.must("agent_response").Data.Message)
}
