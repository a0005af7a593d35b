package containers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/waggle-dev/waggle/e2e/harness/verify"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

// talk opens a session at the gateway.
func (f *fleet) talk(n int) *verify.Conversation {
	f.t.Helper()
	return verify.Converse(f.t, sdk.Options{URL: f.url, Token: f.token, ClientID: fmt.Sprintf("client_%d", n), Language: "en_US"})
}

// TestEachServerOfAClusterFreezesDisappearsAndDies: while clients talk, each NATS server in turn stops running without
// closing a connection, loses its network while it continues running, and is killed. Clients see their whole sessions.
func TestEachServerOfAClusterFreezesDisappearsAndDies(t *testing.T) {
	f := start(t)
	clients := []*verify.Conversation{f.talk(0), f.talk(1)}
	talking, stop := context.WithCancel(context.Background())
	defer stop()
	var all errgroup.Group
	for _, d := range clients {
		all.Go(func() error { return d.Ask(talking) })
	}
	further := func(what string) {
		t.Helper()
		verify.Further(t, what, clients)
	}
	further("the first answers")
	for i := range f.nats {
		for _, m := range mishaps {
			began, before := time.Now(), verify.Answers(clients)
			m.begin(f, i)
			further("clients get answers while nats-" + fmt.Sprint(i+1) + " is " + m.name)
			m.end(f, i)
			f.healthy(f.nats[i])
			further("clients get answers after nats-" + fmt.Sprint(i+1) + " was " + m.name)
			t.Logf("%s %s: %d answers in %.1f s", natsName(i), m.name, verify.Answers(clients)-before, time.Since(began).Seconds())
		}
	}
	stop()
	require.NoError(t, all.Wait())
	t.Logf("%d mishaps; %s", len(mishaps)*len(f.nats), verify.Conversations(t, clients))
}

// mishap is what happens to one server, and what makes it good again.
type mishap struct {
	name       string
	begin, end func(f *fleet, i int)
}

var mishaps = []mishap{
	{"frozen", (*fleet).pause, (*fleet).unpause},
	{"cut off", (*fleet).disconnect, (*fleet).connect},
	{"killed", (*fleet).kill, (*fleet).restart},
}
