package e2e_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/keys"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// always are subjects that no role may use.
var always = []string{
	"$SYS.REQ.SERVER.PING", "$JS.API.STREAM.DELETE.CMD", "$JS.API.STREAM.PURGE.CMD", "$JS.API.STREAM.MSG.DELETE.EVT_00",
	"$JS.API.STREAM.LEADER.STEPDOWN.CMD", "$JS.API.CONSUMER.CREATE.CMD", "$JS.API.CONSUMER.DELETE.CMD.session-00",
	"$JS.API.STREAM.CREATE.OTHER", "_INBOX.x", "timer.fire.session.default.s1.expire", "evt.00.default.nothing.s1", "other",
}

// TestNoRoleMayDoMore: for each role, subjects that only other roles use, or no role
// at all. The server refuses each, and says so.
func TestNoRoleMayDoMore(t *testing.T) {
	g := startGuarded(t, "server.conf")
	total := 0
	for _, l := range permission.All(subject.DefaultPartitions) {
		t.Run(string(l.Role), func(t *testing.T) {
			g.t = t
			publish := append(foreign(l.MayPublish, func(o permission.List) []string { return o.Publish }), always...)
			subscribe := append(foreign(l.MaySubscribe, func(o permission.List) []string { return o.Subscribe }), always...)
			subscribe = append(subscribe, ">", "evt.>", "cmd.>", "$SYS.>", "$JS.>", "*.*.*")
			require.GreaterOrEqual(t, len(publish), 20)
			nc, refused := g.dial(l.Role)
			for _, s := range publish {
				require.NoError(t, nc.Publish(s, nil))
				require.NoError(t, awaitRefusal(refused, s), "%s publishes %s", l.Role, s)
			}
			for _, s := range subscribe {
				_, err := nc.SubscribeSync(s)
				require.NoError(t, err)
				require.NoError(t, awaitRefusal(refused, s), "%s subscribes to %s", l.Role, s)
			}
			require.NoError(t, nc.Flush())
			require.Empty(t, refused)
			total += len(publish) + len(subscribe)
			t.Logf("refused: %d to publish, %d to subscribe", len(publish), len(subscribe))
		})
	}
	require.GreaterOrEqual(t, len(g.log.all()), total, "the server's log names each")
	t.Logf("%d subjects refused in all", total)
	t.Run("attacks", func(t *testing.T) {
		g.t = t
		g.run(permission.Bootstrap, "bootstrap")
		attackEachOther(t, g)
	})
}

// foreign returns subjects of other roles that the role may not use.
func foreign(may func(string) bool, of func(permission.List) []string) []string {
	var out []string
	for _, other := range permission.All(subject.DefaultPartitions) {
		for _, pattern := range of(other) {
			if s := concrete(pattern); !may(s) {
				out = append(out, s)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// concrete returns a subject that matches the pattern. A consumer's filter, which is a
// pattern within a subject, stays what it is.
func concrete(pattern string) string {
	if strings.HasPrefix(pattern, "$JS.API.CONSUMER.CREATE.") {
		return strings.ReplaceAll(pattern, ".*.", ".x.")
	}
	return strings.NewReplacer("*", "x", ">", "x.y").Replace(pattern)
}

func awaitRefusal(refused <-chan error, subject string) error {
	select {
	case err := <-refused:
		if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), `"`+subject+`"`) {
			return err
		}
		return nil
	case <-time.After(process.MaxWait):
		return errors.New("the server did not refuse it")
	}
}

// TestAStrangerDoesNotGetIn: without a key, and with one that the server does not know.
func TestAStrangerDoesNotGetIn(t *testing.T) {
	g := startGuarded(t, "server.conf")
	_, err := nats.Connect(g.url)
	require.ErrorIs(t, err, nats.ErrAuthorization)
	others := t.TempDir()
	_, err = keys.Ensure(others)
	require.NoError(t, err)
	key, err := nats.NkeyOptionFromSeed(keys.SeedFile(others, permission.Gateway))
	require.NoError(t, err)
	_, err = nats.Connect(g.url, key)
	require.ErrorIs(t, err, nats.ErrAuthorization)
}
