package command_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/command"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// ledger checks the guarantees of ordered commands from the handlers' side.
type ledger struct {
	mu       sync.Mutex
	accepted map[string]int // key -> highest number; all below were accepted too
	finished map[string]int
	on       map[string]int // key -> current number of handlers
	attempts int
	repeats  int // started again after the end: allowed
	broken   int // started, and not finished by that handler
	overlaps []string
	disorder []string
}

func newLedger() *ledger {
	return &ledger{accepted: map[string]int{}, finished: map[string]int{}, on: map[string]int{}}
}

func (l *ledger) begin(key string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempts++
	if l.on[key]++; l.on[key] > 1 {
		l.overlaps = append(l.overlaps, fmt.Sprint(key, " ", n))
	}
	switch done := l.finished[key]; {
	case n <= done:
		l.repeats++
	case n > done+1:
		l.disorder = append(l.disorder, fmt.Sprint(key, " ", n, " after ", done))
	}
}

func (l *ledger) end(key string, n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.on[key]--
	if err != nil {
		l.broken++
	} else {
		l.finished[key] = max(l.finished[key], n)
	}
}

func (l *ledger) accept(key string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accepted[key] = n
}

// audit waits until every accepted command was handled, and reports.
func (l *ledger) audit(t *testing.T, what string) {
	t.Helper()
	var accepted, finished int
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		accepted, finished = 0, 0
		for key, n := range l.accepted {
			accepted += n
			finished += l.finished[key]
		}
		return finished >= accepted
	}, 4*bustest.MaxWait, 20*time.Millisecond, "accepted %d, finished %d", accepted, finished) // hundreds may be left
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Logf("%s: keys %d, accepted %d, handled %d, lost %d; attempts %d, repeated %d, broken off %d; out of order %d, at the same time %d",
		what, len(l.accepted), accepted, finished, accepted-finished, l.attempts, l.repeats, l.broken, len(l.disorder), len(l.overlaps))
	require.Equal(t, accepted, finished)
	require.Empty(t, l.disorder)
	require.Empty(t, l.overlaps)
}

// handler takes a moment over each command, fails now and then, and stops when its context ends.
func (l *ledger) handler(seed uint64) command.Handler {
	var mu sync.Mutex
	dice := rand.New(rand.NewPCG(seed, 1)) // repeatable by its seed
	roll := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return dice.IntN(n)
	}
	return func(ctx context.Context, c cmd.Command, _ command.Delivery) (err error) {
		key, n := c.Key.String(), numberOf(c)
		l.begin(key, n)
		defer func() { l.end(key, n, err) }()
		if roll(20) == 0 {
			return errBroken
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(roll(4)) * time.Millisecond):
			return nil
		}
	}
}

// feed sends the commands of each key one after the other, until each is accepted.
func (l *ledger) feed(t *testing.T, c *bus.Conn, keys, each int) {
	s := command.NewSender(c)
	var all sync.WaitGroup
	for k := range keys {
		all.Go(func() {
			key := fmt.Sprint("key", k)
			for n := 1; n <= each; n++ {
				one, ctx := number(t, cmd.Session, key, n), maxWait(t)
				for s.Send(ctx, one) != nil { // an unsure sender returns an error: send it again
					if ctx.Err() != nil {
						t.Errorf("%s %d is not accepted", key, n)
						return
					}
				}
				l.accept(key, n)
			}
		})
	}
	all.Wait()
}

// Replicas join, leave, are stopped in the middle of a command and are cut off, while commands of many keys arrive.
func TestOrderHoldsWhileReplicasComeAndGo(t *testing.T) {
	t.Parallel()
	const keys, each, rounds = 24, 40, 6
	s := bustest.Start(t, bus.DefaultTopology())
	l := newLedger()
	fed := make(chan struct{})
	feeder := bustest.Dial(t, s.URL)
	spawn := func(n int) *replica {
		return newReplica(t, s.URL, fmt.Sprint("r", n), command.OrderedConfig{Backoff: soon, MaxDeliver: 1000, RestAfter: 10 * time.Millisecond}, l.handler(uint64(n)))
	}
	live := []*replica{spawn(0), spawn(1)}
	go func() {
		defer close(fed)
		l.feed(t, feeder, keys, each)
	}()
	for n := range rounds {
		l.progress(t, keys*each*(n+1)/(rounds+2))
		live = append(live, spawn(len(live)+10*n+2))
		gone := live[0]
		live = live[1:]
		switch n % 3 {
		case 0:
			require.NoError(t, errors.Join(gone.lease.Leave(maxWait(t)), gone.ordered.Drain(maxWait(t))))
		case 1:
			gone.ordered.Stop() // its lease stays
		case 2:
			gone.conn.NATS().Close() // others wait for its command
		}
	}
	<-fed
	l.audit(t, fmt.Sprintf("%d replicas came and went", rounds))
	require.Zero(t, size(t, feeder, subject.StreamDead))
}

// progress waits until so many commands were handled.
func (l *ledger) progress(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		sum := 0
		for _, done := range l.finished {
			sum += done
		}
		return sum >= n
	}, bustest.MaxWait, 5*time.Millisecond, "%d commands", n)
}

// The leader of the queue is killed again and again, under load.
func TestOrderHoldsWhenLeadersAreKilled(t *testing.T) {
	t.Parallel()
	const keys, each, kills = 16, 40, 2
	h := bustest.Cluster(t, 3)
	l := newLedger()
	fed := make(chan struct{})
	for n := range 2 {
		newReplica(t, h.URL(), fmt.Sprint("r", n), command.OrderedConfig{Backoff: soon, MaxDeliver: 1000}, l.handler(uint64(n)))
	}
	feeder := h.Conn()
	go func() {
		defer close(fed)
		l.feed(t, feeder, keys, each)
	}()
	for n := range kills {
		l.progress(t, keys*each*(n+1)/(kills+2))
		victim := h.LeaderOf(subject.StreamCommands)
		h.Kill(victim)
		l.progress(t, keys*each*(n+1)/(kills+2)+keys)
		h.Restart(victim)
		h.StepDown(feeder, subject.StreamCommands)
	}
	<-fed
	l.audit(t, fmt.Sprintf("R3, %d leaders killed, as many stepped down", kills))
}
