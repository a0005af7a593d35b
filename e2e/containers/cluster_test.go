package containers_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/waggle-dev/waggle/e2e/harness"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	client "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

// question is one that the demo model answers with a plan and tools.
const question = "Which files are in the workspace, and what does notes.md say?"

// talker asks one question after the other.
type talker struct {
	*harness.Device
	sent    []string
	answers atomic.Int64
}

func (f *fleet) talk(n int) *talker {
	f.t.Helper()
	d := &talker{Device: harness.Follow(f.t, client.Options{URL: f.url, Token: f.token, ClientID: fmt.Sprintf("client_%d", n), Language: "en_US"})}
	d.Until("the session", func(x client.Frame) bool { return x.Event == myagent.AgentSessionCreated })
	return d
}

// ask asks until the context ends; the last question is answered too.
func (d *talker) ask(ctx context.Context) error {
	for ctx.Err() == nil {
		id := d.Message(question, nil)
		d.sent = append(d.sent, id)
		step, cancel := harness.Within(2 * harness.Patience)
		_, err := d.Await(step, harness.EndOf(id))
		cancel()
		if err != nil {
			return fmt.Errorf("message %d of session %s: %w", len(d.sent), d.Session(), err)
		}
		d.answers.Add(1)
	}
	return nil
}

// TestEachServerOfAClusterFreezesDisappearsAndDies: while clients talk, each NATS server in turn stops running without
// closing a connection, loses its network while it goes on running, and is killed. Clients see their whole sessions.
func TestEachServerOfAClusterFreezesDisappearsAndDies(t *testing.T) {
	f := start(t)
	talkers := []*talker{f.talk(0), f.talk(1)}
	talking, stop := context.WithCancel(context.Background())
	defer stop()
	var all errgroup.Group
	for _, d := range talkers {
		all.Go(func() error { return d.ask(talking) })
	}
	progress := func() int64 { return min(talkers[0].answers.Load(), talkers[1].answers.Load()) }
	further := func(what string) {
		t.Helper()
		before := progress()
		harness.Eventually(t, what, func() bool { return progress() > before })
	}
	further("the first answers")
	for i := range f.nats {
		for _, m := range mishaps {
			began, before := time.Now(), progress()
			m.begin(f, i)
			further("clients get answers while nats-" + fmt.Sprint(i+1) + " is " + m.name)
			m.end(f, i)
			f.healthy(f.nats[i])
			further("clients get answers after nats-" + fmt.Sprint(i+1) + " was " + m.name)
			t.Logf("%s %s: %d answers in %.1f s", natsName(i), m.name, progress()-before, time.Since(began).Seconds())
		}
	}
	stop()
	require.NoError(t, all.Wait())
	f.judge(talkers)
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

// judge compares what each client saw over broken lines with what a latecomer sees.
func (f *fleet) judge(talkers []*talker) {
	f.t.Helper()
	events, messages := 0, 0
	for i, d := range talkers {
		late := harness.Follow(f.t, client.Options{URL: f.url, Token: f.token, Session: d.Session()})
		late.UntilSeq(d.Seq())
		frames := d.Frames()
		for j, x := range frames {
			require.EqualValues(f.t, j+1, x.Seq, "session %d", i)
		}
		require.True(f.t, slices.Equal(d.Raw(), late.Raw()[:len(frames)]), "session %d: a latecomer sees something else", i)
		for _, id := range d.sent {
			asked, answered := 0, 0
			is := harness.EndOf(id)
			for _, x := range frames {
				if x.Event == myagent.UserMessage && x.Meta().MessageID == id {
					asked++
				}
				if is(x) {
					answered++
				}
			}
			require.Equal(f.t, []int{1, 1}, []int{asked, answered}, "message %s of session %d", id, i)
		}
		_, gaps := d.Losses()
		require.Empty(f.t, gaps)
		events, messages = events+len(frames), messages+len(d.sent)
	}
	f.t.Logf("%d clients, %d mishaps: %d events, 0 lost, 0 doubled, 0 reordered; %d messages, each answered once",
		len(talkers), len(mishaps)*len(f.nats), events, messages)
}
