package gateway_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// key returns an API key whose secret is its id.
func key(keyID, tenant string, roles ...auth.Role) auth.APIKey {
	return auth.APIKey{ID: keyID, SHA256: auth.HashKey(keyID), Subject: "who-" + keyID, Tenant: tenant, Roles: roles}
}

// authenticated makes the gateway ask for one of the keys.
func authenticated(keys ...auth.APIKey) option {
	return func(_ *gateway.Config, d *gateway.Deps) {
		a, err := auth.New(context.Background(), auth.Config{APIKeys: keys})
		if err != nil {
			panic(err)
		}
		d.Auth = a
	}
}

func bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }

// browser is how a page passes a token.
func browser(token string) []string {
	return []string{"Sec-WebSocket-Protocol", "waggle, waggle.token." + base64.RawURLEncoding.EncodeToString([]byte(token))}
}

func TestWaysToShowCredentials(t *testing.T) {
	t.Parallel()
	r := start(t, authenticated(key("alice", "red")))
	for name, header := range map[string][]string{
		"bearer": bearer("alice"), "api key": {"X-API-Key", "alice"}, "subprotocol": browser("alice"),
	} {
		t.Run(name, func(t *testing.T) {
			c := r.dial("", header...)
			session := c.ready()
			open := c.begin(r, session)
			require.Equal(t, "who-alice", open.Principal)
			require.Equal(t, "red", open.Tenant.String())
			if name == "subprotocol" {
				require.Equal(t, []string{"waggle"}, c.header.Values("Sec-WebSocket-Protocol"), "the token is not echoed")
			}
			c.leave()
		})
	}
	t.Run("first message", func(t *testing.T) {
		c := r.dial("")
		c.write(text(`{"type":"auth","token":"alice"}`))
		require.Equal(t, "red", c.begin(r, c.ready()).Tenant.String())
		c.leave()
	})
}

func TestInvalidCredentials(t *testing.T) {
	expired := key("old", "red")
	expired.Expires = time.Now().Add(-time.Second)
	r := start(t, authenticated(key("alice", "red"), key("robot", "red", auth.RoleService), expired))
	settled := r.settled()
	for name, c := range map[string]struct {
		header []string
		status int
		title  string
	}{
		"wrong":       {bearer("mallory"), 401, "UNAUTHENTICATED"},
		"empty":       {bearer(""), 401, "UNAUTHENTICATED"},
		"two":         {append(bearer("alice"), bearer("mallory")...), 401, "UNAUTHENTICATED"},
		"expired":     {bearer("old"), 401, "CREDENTIALS_EXPIRED"},
		"wrong role":  {bearer("robot"), 403, "FORBIDDEN"},
		"wrong key":   {[]string{"X-API-Key", "Alice"}, 401, "UNAUTHENTICATED"},
		"no base64":   {[]string{"Sec-WebSocket-Protocol", "waggle.token.!!!"}, 401, "UNAUTHENTICATED"},
		"not offered": {[]string{"Sec-WebSocket-Protocol", "waggle.token.bWFsbG9yeQ"}, 401, "UNAUTHENTICATED"},
	} {
		t.Run(name, func(t *testing.T) {
			_, status, body := r.handshake("", c.header...)
			require.Equal(t, c.status, status)
			require.Contains(t, body, c.title)
			require.NotContains(t, body, "alice")
			require.NotContains(t, body, "mallory")
		})
	}
	// A page sees nothing of a handshake that failed, so it is told on the socket.
	for token, want := range map[string]struct {
		fault string
		code  int
	}{"mallory": {"UNAUTHENTICATED", 4401}, "old": {"CREDENTIALS_EXPIRED", 4401}, "robot": {"FORBIDDEN", 4403}} {
		c := r.dial("", browser(token)...)
		require.Equal(t, want.fault, c.must("error").Data.Code)
		c.closes(want.code)
		c = r.dial("")
		c.write(text(fmt.Sprintf(`{"type":"auth","token":%q}`, token)))
		require.Equal(t, want.fault, c.must("error").Data.Code)
		c.closes(want.code)
	}
	settled()
}

func TestCredentialsHaveATimeLimit(t *testing.T) {
	r := start(t, authenticated(key("alice", "red")), func(c *gateway.Config, _ *gateway.Deps) {
		c.FirstMessage, c.PingInterval = 50*time.Millisecond, 40*time.Millisecond
	})
	r.dial("").closes(1008)
}

func TestWithoutCredentialsOnlyOnLoopback(t *testing.T) {
	r := prepare(t, sharedBus(t))
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.0.2.1:9000", "[::]:0", "example.com:1"} {
		_, err := gateway.New(gateway.Config{Addr: addr}, r.deps())
		require.ErrorContains(t, err, "auth.", addr)
	}
	d := r.deps()
	authenticated(key("k", "red"))(nil, &d)
	s, err := gateway.New(gateway.Config{Addr: "0.0.0.0:0"}, d)
	require.NoError(t, err)
	s.Stop()
}

// Of a session of another tenant nothing can be learned: not that it is there, not
// by its id, not by a position in it, and nothing can be sent to it.
func TestTenantsSeeNothingOfEachOther(t *testing.T) {
	r := start(t, authenticated(key("alice", "red"), key("bob", "blue")))
	secret := r.session("red", "secret of red")
	name := secret.Entity.String()

	say := func(query string) (answers []string) {
		c := r.dial(query, bearer("bob")...)
		for {
			op, payload, err := c.read()
			if err != nil {
				return append(answers, err.Error())
			}
			if op == opText {
				answers = append(answers, answer(payload))
			}
		}
	}
	for _, after := range []string{"", "&after=0", "&after=1", "&after=99", "&after=x"} {
		require.Equal(t, say("session=no-such-session"+after), say("session="+name+after), after)
	}

	// The same id names bob's own session, if he has one.
	own := secret
	own.Tenant = r.session("blue").Tenant
	require.NoError(t, r.append(own, "created", event.SessionCreatedData{Dialect: "orbit"}))
	r.answers(own, "bob's own")
	c := r.dial("session="+name+"&after=0", bearer("bob")...)
	c.ready()
	require.Equal(t, "bob's own", c.must("agent_response").Data.Message)
	r.answers(secret, "more secrets")
	r.answers(own, "bob again")
	require.Equal(t, "bob again", c.must("agent_response").Data.Message, "red's events stay with red")
	c.write(message("to bob"))
	require.Equal(t, "blue", r.nextCommand(name).Tenant.String())
	last, err := r.log.Last(context.Background(), secret)
	require.NoError(t, err)
	require.Equal(t, uint64(3), last.Seq)
}

// Names in the first message are exact: another reader of the same bytes must not see other credentials.
func TestTheFirstMessageIsExact(t *testing.T) {
	t.Parallel()
	r := start(t, authenticated(key("alice", "red")))
	for _, first := range []string{
		`{"Type":"auth","token":"alice"}`, `{"type":"auth","Token":"alice"}`, `{"type":"AUTH","token":"alice"}`,
		`{"type":"auth","token":"mallory","TOKEN":"alice"}`, `{"type":"auth","token":null}`, `{"type":"auth"}`, `{"type":"auth","token":["alice"]}`,
		`{"type":"auth","token":1}`, `{"type":"auth","type":"auth","token":"alice"}`, `{"type":"user_message","content":"hi"}`, `{`, `null`,
	} {
		c := r.dial("")
		c.write(text(first))
		c.refused("UNAUTHENTICATED")
		c.closes(4401)
	}
	c := r.dial("token=alice") // addresses are logged
	c.write(message("hi"))
	c.refused("UNAUTHENTICATED")
	c.closes(4401)
	c = r.dial("")
	c.write(text(`{"token":"alice","type":"auth","more":1}`))
	c.ready()
}

// clock is a wall clock that the test moves.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

func TestExpiryClosesTheSocket(t *testing.T) {
	t.Parallel()
	k := key("alice", "red")
	k.Expires = time.Now().Add(time.Hour)
	var cl clock
	r := start(t, authenticated(k, key("forever", "red")), func(_ *gateway.Config, d *gateway.Deps) { d.Clock = cl.now })
	c, other := r.dial("", bearer("alice")...), r.dial("", bearer("forever")...)
	c.ready()
	other.ready()
	cl.advance(time.Hour)
	c.refused("CREDENTIALS_EXPIRED")
	c.closes(4401)
	other.write(text(kind("alive")))
	other.refused("UNKNOWN_MESSAGE_TYPE")
	eventually(t, "the end is counted", func() bool { return r.metric("waggle_gateway_closes_total", "code", "4401") == 1 })
}

// reloadable is what auth.New returns, too.
type reloadable interface {
	Reload(context.Context, auth.Config) error
}

func TestWithdrawnKeyClosesTheSocket(t *testing.T) {
	t.Parallel()
	var a auth.Authenticator
	r := start(t, authenticated(key("alice", "red"), key("bob", "red")), func(_ *gateway.Config, d *gateway.Deps) { a = d.Auth })
	alice, bob := r.dial("", bearer("alice")...), r.dial("", browser("bob")...)
	alice.ready()
	bob.ready()
	ra, ok := a.(reloadable)
	require.True(t, ok)
	require.NoError(t, ra.Reload(context.Background(), auth.Config{APIKeys: []auth.APIKey{key("bob", "red")}}))
	alice.refused("UNAUTHENTICATED")
	alice.closes(4401)
	bob.write(text(kind("alive")))
	bob.refused("UNKNOWN_MESSAGE_TYPE")
}

func TestConnectionsPerPrincipal(t *testing.T) {
	r := start(t, authenticated(key("alice", "red"), key("bob", "red")), func(c *gateway.Config, _ *gateway.Deps) { c.PerPrincipal = 2 })
	one, two := r.dial("", bearer("alice")...), r.dial("", bearer("alice")...)
	one.ready()
	two.ready()
	c, status, body := r.handshake("", bearer("alice")...)
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Contains(t, body, "TOO_MANY_CONNECTIONS")
	require.NotEmpty(t, c.header.Get("Retry-After"))
	late := r.dial("")
	late.write(text(`{"type":"auth","token":"alice"}`))
	require.Equal(t, "TOO_MANY_CONNECTIONS", late.must("error").Data.Code)
	late.closes(1013)
	r.dial("", bearer("bob")...).ready()
	one.leave()
	eventually(t, "there is room again", func() bool {
		c, status, _ := r.handshake("", bearer("alice")...)
		_ = c.Conn.Close()
		return status == http.StatusSwitchingProtocols
	})
}

func TestConnectionsInAll(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *gateway.Config, _ *gateway.Deps) { c.MaxConnections = 3 })
	for range 3 {
		r.dial("").ready()
	}
	_, status, body := r.handshake("")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "OVERLOADED")
	status, body, _ = r.get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status, body)

	r = start(t, func(c *gateway.Config, _ *gateway.Deps) { c.HandshakeRate = 0.001 })
	statuses := map[int]int{}
	for range 60 {
		c, status, _ := r.handshake("")
		_ = c.Conn.Close()
		statuses[status]++
	}
	require.Equal(t, map[int]int{101: 50, 429: 10}, statuses, "the burst, and no more")
	require.Equal(t, 10.0, r.metric("waggle_gateway_refused_total", "reason", "RATE_LIMITED"))
}
