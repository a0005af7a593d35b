package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/keys"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// seed returns the file with a role's key of the embedded NATS server.
func (i *installation) seed(role permission.Role) string {
	return keys.SeedFile(filepath.Join(i.dir, "data", "nats-keys"), role)
}

// join connects to the bus of the installation with the seed file of a role, and passes the refusals on.
func (i *installation) join(t *testing.T, role permission.Role) (*nats.Conn, <-chan error) {
	t.Helper()
	key, err := nats.NkeyOptionFromSeed(i.seed(role))
	require.NoError(t, err)
	refused := make(chan error, 16)
	nc, err := nats.Connect(i.nats, key, nats.Timeout(bustest.MaxWait), nats.CustomInboxPrefix(permission.Inbox(role)),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc, refused
}

func TestTheEmbeddedBusAsksForAKey(t *testing.T) {
	t.Parallel()
	i := start(t)
	_, err := nats.Connect(i.nats)
	require.ErrorIs(t, err, nats.ErrAuthorization, "a program without a key")
	stranger, err := nkeys.CreateUser()
	require.NoError(t, err)
	public, err := stranger.PublicKey()
	require.NoError(t, err)
	_, err = nats.Connect(i.nats, nats.Nkey(public, stranger.Sign))
	require.ErrorIs(t, err, nats.ErrAuthorization, "a program with a key of its own")

	info, err := os.Stat(filepath.Join(i.dir, "data", "nats-keys"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	monitor, refused := i.join(t, permission.Monitor)
	heard, err := monitor.SubscribeSync("live.>")
	require.NoError(t, err)
	require.NoError(t, monitor.Flush())
	answer, err := i.run(t, `bin/waggle chat "hello"`)
	require.NoError(t, err, answer)
	_, err = heard.NextMsg(maxWait)
	require.NoError(t, err, "the monitor receives announcements")
	for _, subject := range []string{"cmd.session.default.session.x.message", "live.default.session.x.y", "$JS.API.INFO", "evt.x"} {
		require.NoError(t, monitor.Publish(subject, []byte("{}")))
		require.NoError(t, monitor.Flush())
		select {
		case err := <-refused:
			require.ErrorIs(t, err, nats.ErrPermissionViolation, subject)
		case <-time.After(maxWait):
			require.Fail(t, "the monitor may publish", subject)
		}
	}

	for _, line := range []string{"waggle tail --no-follow", "waggle audit", "waggle doctor", "waggle backup --out saved"} {
		out, err := i.run(t, line)
		require.NoError(t, err, "%s: %s", line, out)
	}
	out, err := i.run(t, "cd workspace && waggle tail --no-follow")
	require.Error(t, err)
	require.Contains(t, out, "asks for credentials", "the command does not run beside the keys")
}
