package worker_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/eventlog"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// TestStopClosesAMembersRequest stops a member at random points of what it says: the
// request to its model is closed each time, nothing is said after that, and the member
// takes the next message.
func TestStopClosesAMembersRequest(t *testing.T) {
	const rounds, words = 12, 40
	text := scripted.Words(strings.Repeat("word ", words))
	r := newMember(t, scripted.Always(scripted.Stream(scripted.Every(time.Millisecond, text...), scripted.Hang())), nil)
	r.worker("w1", nil)
	next, stop := iter.Pull2(r.Log.Tail(r.Ctx, r.ref, eventlog.Cursor{}))
	defer stop()
	over, half := map[string]bool{}, map[string]bool{}
	read := func() event.Event {
		e, err, _ := next()
		require.NoError(t, err)
		require.False(t, over[runOf(t, e.Event)], "%s after the end of its run", e.Type)
		halfSaid(t, e.Event, half)
		return e.Event
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range rounds {
		run := r.ask("talk")
		x, err := r.llm.Exchange(r.Ctx, i+1)
		require.NoError(t, err)
		for heard, until := 0, rnd.IntN(words*len("word ")); heard < until; {
			if e := read(); e.Type == event.MessageDelta {
				d, err := event.As[event.MessageDeltaData](e)
				require.NoError(t, err)
				heard += len(d.Text)
			}
		}
		r.command(cmd.Cancel, fmt.Sprint("stop-", i), cmd.CancelRun{})
		r.gone(x)
		e := read()
		for e.Type != event.RunCancelled {
			e = read()
		}
		require.Equal(t, run, runOf(t, e))
		require.Empty(t, half, "what it has half said ends before its run")
		over[run] = true
	}
}

// halfSaid keeps the messages whose text viewers have seen begin and not end.
func halfSaid(t *testing.T, e event.Event, half map[string]bool) {
	t.Helper()
	switch e.Type {
	case event.MessageDelta:
		d, err := event.As[event.MessageDeltaData](e)
		require.NoError(t, err)
		require.Equal(t, !half[d.MessageID], d.Begins, "the first part of a text says that it is")
		half[d.MessageID] = true
	case event.MessageCompleted:
		d, err := event.As[event.MessageCompletedData](e)
		require.NoError(t, err)
		require.Equal(t, !half[d.MessageID], d.Silent)
		delete(half, d.MessageID)
	case event.MessageDiscarded:
		d, err := event.As[event.MessageDiscardedData](e)
		require.NoError(t, err)
		require.Equal(t, !half[d.MessageID], d.Silent)
		delete(half, d.MessageID)
	}
}
