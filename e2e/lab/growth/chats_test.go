package growth_test

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/lab/growth"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

var (
	paces   = flag.String("paces", "20,1000", "how many times a second all chats together ask, ascending")
	chats   = flag.Int("chats", 12, "chats that ask at once")
	length  = flag.Duration("length", 3*time.Second, "how long the chats ask")
	quiet   = flag.Duration("quiet", time.Second, "how long the installation rests before its idle cost is measured, and how long that takes")
	answers = flag.Int("answers", 10, "answers of a session before its chat opens the next one")
)

// TestChats prints what chats cost that ask so many times a second, or as often as they get answers: memory under load and after a
// rest, what is stored for an answer, and the processor time of the idle installation before and after.
func TestChats(t *testing.T) {
	table := growth.NewTable("asked a second", "answers", "a second", "cpu ms", "events an answer", "bytes an answer", "most memory MiB",
		"memory after the rest MiB", "idle cpu before %", "idle cpu after %")
	for _, pace := range sizes(t, *paces) {
		i := install(t)
		idleBefore, stored := i.idle(), i.bytes()
		eventsBefore := i.events()
		load, most := i.talk(pace)
		storedBy, events := i.bytes()-stored, i.events()-eventsBefore
		idle := i.idle() // rests first
		n := float64(load.answers)
		require.Positive(t, load.answers)
		table.Add(pace, n, n/length.Seconds(), load.busy.Seconds()*1e3/n, float64(events)/n, float64(storedBy)/n,
			float64(most)/(1<<20), float64(i.memory()), idleBefore*100, idle*100)
		i.stop()
	}
	shown(t, "Busy chats", "Chats that ask so many times a second together, but none before it has its answer: the work of each answer, and what "+
		"remains after it. More than the installation can answer is a chat without a pause.", table)
}

type load struct {
	answers int
	busy    time.Duration
}

// talk lets the chats ask so many times a second and returns what they got and the most resident bytes of the process meanwhile.
func (i *installation) talk(pace int) (load, int64) {
	i.t.Helper()
	turns := rate.NewLimiter(rate.Limit(pace), 1)
	var asked, most atomic.Int64
	ctx, cancel := context.WithTimeout(i.t.Context(), *length)
	defer cancel()
	before := i.busy()
	var all sync.WaitGroup
	errs := make(chan error, *chats)
	for range *chats {
		all.Go(func() {
			for ctx.Err() == nil {
				n, err := i.chat(ctx, turns)
				asked.Add(int64(n))
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			if n, err := i.up.Memory(); err == nil {
				most.Store(max(most.Load(), int64(n)))
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	all.Wait()
	<-watched
	close(errs)
	for err := range errs {
		require.NoError(i.t, err)
	}
	return load{int(asked.Load()), i.busy() - before}, most.Load()
}

// chat opens a session and returns the number of answers that it got in it, one for each turn.
func (i *installation) chat(ctx context.Context, turns *rate.Limiter) (int, error) {
	c, err := client.TryOrbit(i.t, i.socket(""))
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if err := c.ReadTo("agent_ready", 1); err != nil {
		return 0, err
	}
	for n := range *answers {
		if turns.Wait(ctx) != nil { // the time is up
			return n, nil
		}
		c.Ask("what is 2+3?")
		if err := c.ReadTo("agent_response", 1); err != nil {
			return n, err
		}
	}
	return *answers, nil
}

func (i *installation) busy() time.Duration {
	i.t.Helper()
	d, err := i.up.Busy()
	require.NoError(i.t, err)
	return d
}

// idle returns the share of a processor that the installation uses at rest, after a pause.
func (i *installation) idle() float64 {
	i.t.Helper()
	<-time.After(*quiet)
	before := i.busy()
	<-time.After(*quiet)
	return (i.busy() - before).Seconds() / quiet.Seconds()
}

// bytes returns the size of the data folder.
func (i *installation) bytes() int64 { return bytesBelow(i.t, i.data()) }

// bytesBelow returns the size of the files below a folder.
func bytesBelow(t *testing.T, dir string) (sum int64) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return ignoreGone(err)
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return ignoreGone(err)
	}))
	return sum
}

// ignoreGone passes over files that the running server deletes meanwhile.
func ignoreGone(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// events returns how many events all logs hold.
func (i *installation) events() (sum uint64) {
	i.t.Helper()
	conn := i.connect()
	defer conn.Close()
	for _, p := range subject.DefaultPartitions.All() {
		s, err := conn.JS().Stream(i.t.Context(), p.EventStream())
		require.NoError(i.t, err)
		sum += s.CachedInfo().State.Msgs
	}
	return sum
}

// TestPartitions prints what the numbers of partitions cost that an installation may choose.
func TestPartitions(t *testing.T) {
	table := growth.NewTable("partitions", "start ms", "memory after the start MiB", "idle cpu before %", "answers a second", "cpu ms an answer", "most memory MiB",
		"idle cpu after %")
	for _, n := range subject.PartitionChoices() {
		i := install(t, fmt.Sprintf("WAGGLE_NATS_PARTITIONS=%d", n))
		started, memory, idle := i.started, i.memory(), i.idle()
		load, most := i.talk(slices.Max(sizes(t, *paces)))
		require.Positive(t, load.answers)
		table.Add(int(n), started.Seconds()*1e3, float64(memory), idle*100, float64(load.answers)/length.Seconds(),
			load.busy.Seconds()*1e3/float64(load.answers), float64(most)/(1<<20), i.idle()*100)
		i.stop()
	}
	shown(t, "Partitions", "The same chats in new installations with each number of partitions (`nats.partitions`). More of them help only where the NATS "+
		"servers of a cluster share the streams.", table)
}
