package team_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/team"
)

// benchAgents stream at once.
const benchAgents = 50

// BenchmarkRelay measures how many events of 50 streaming agents a team's log takes in a
// second (events/s), and how long after its own append each is there (added latency)
// when the agents write 20 events a second each. Beside it, in the same run, runs the
// peer: a plain copy of NATS messages, one publish with acknowledgement after the other.
func BenchmarkRelay(b *testing.B) {
	for _, c := range []struct {
		name string
		conn func() *bus.Conn
	}{
		{"R1", func() *bus.Conn { return bustest.Single(b) }},
		{"R3", func() *bus.Conn { return bustest.Cluster(b, 3).Conn() }},
	} {
		b.Run(c.name+"/team/flat-out", func(b *testing.B) { benchTeam(b, c.conn(), 0) })
		b.Run(c.name+"/team/paced", func(b *testing.B) { benchTeam(b, c.conn(), 50*time.Millisecond) })
		b.Run(c.name+"/copy/flat-out", func(b *testing.B) { benchCopy(b, c.conn(), 0) })
		b.Run(c.name+"/copy/paced", func(b *testing.B) { benchCopy(b, c.conn(), 50*time.Millisecond) })
	}
}

// benchDelta makes an event of about 400 bytes.
func benchDelta(run string, i int) event.Data {
	return event.MessageDeltaData{MessageID: run + ".m", RunID: run, Attempt: 1, Text: fmt.Sprint("the quick brown fox jumps over ", i)}
}

func benchTeam(b *testing.B, conn *bus.Conn, pace time.Duration) {
	r := rigOn(b, conn)
	r.cast.plays(leave)
	r.start("one", team.Config{})
	var members []event.MemberDefinition
	for i := range benchAgents {
		members = append(members, agent(fmt.Sprint("A", i)))
	}
	l := r.found(teamOf("busy", members...))
	for _, m := range members {
		r.message(l, "to-"+m.Name, m.Name, "go")
	}
	r.untilInner(l, event.RunStarted, benchAgents)
	at, err := r.Log.Last(r.Ctx, l)
	if err != nil {
		b.Fatal(err)
	}
	seen := newStopwatch(b.N)
	v := r.Log.Watch(l, at, seen)
	defer v.Close()
	logs := r.agents(l, members)
	b.ResetTimer()
	write(b, b.N, pace, func(agent, i int) {
		a := r.cast.actor(logs[agent])
		if err := a.put(r.Ctx, fmt.Sprint("b", i), benchDelta("run_to-"+a.name, i)); err != nil {
			b.Error(err)
		}
		seen.written(fmt.Sprintf("%s.%d", logs[agent].Entity, a.n))
	})
	seen.report(b)
}

// write has 50 agents write n events in all.
func write(b *testing.B, n int, pace time.Duration, put func(agent, i int)) {
	b.Helper()
	var all sync.WaitGroup
	for agent := range benchAgents {
		all.Go(func() {
			var tick <-chan time.Time
			if pace > 0 {
				t := time.NewTicker(pace)
				defer t.Stop()
				tick = t.C
			}
			for i := agent; i < n; i += benchAgents {
				if tick != nil {
					<-tick
				}
				put(agent, i)
			}
		})
	}
	all.Wait()
}

// stopwatch is a sink that notes when events arrive.
type stopwatch struct {
	mu    sync.Mutex
	there map[string]time.Time
	done  map[string]time.Time
	n     int
	all   chan struct{}
}

func newStopwatch(n int) *stopwatch {
	return &stopwatch{there: map[string]time.Time{}, done: map[string]time.Time{}, n: n, all: make(chan struct{})}
}

func (s *stopwatch) written(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done[id] = time.Now()
}

func (s *stopwatch) arrived(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.there[id] = time.Now()
	if len(s.there) == s.n {
		close(s.all)
	}
}

// Deliver implements eventlog.Sink.
func (s *stopwatch) Deliver(batch []*eventlog.Entry) int {
	for _, e := range batch {
		if e.Type == event.TeamMemberEvent {
			s.arrived(e.ID)
		}
	}
	return len(batch)
}

func (s *stopwatch) Truncated(uint64) {}
func (s *stopwatch) Failed(error)     {}
func (s *stopwatch) CaughtUp(uint64)  {}

func (s *stopwatch) report(b *testing.B) {
	b.Helper()
	select {
	case <-s.all:
	case <-time.After(maxWait):
		b.Fatal("not everything arrived")
	}
	b.StopTimer()
	s.mu.Lock()
	defer s.mu.Unlock()
	var late []time.Duration
	for id, at := range s.there {
		late = append(late, max(0, at.Sub(s.done[id])))
	}
	slices.Sort(late)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(late[len(late)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(late[len(late)*99/100].Microseconds())/1000, "p99-ms")
}

// benchCopy is the peer: 50 subjects of a stream, copied to one subject.
func benchCopy(b *testing.B, conn *bus.Conn, pace time.Duration) {
	r := rigOn(b, conn)
	to := teamLog(id.EntityFromExternal("copy"))
	seen := newStopwatch(b.N)
	in := make(chan *nats.Msg, 1<<20)
	sub, err := conn.NATS().ChanSubscribe("copy.*", in)
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m := range in {
			_, err := conn.JS().PublishMsg(r.Ctx, &nats.Msg{Subject: subject.DefaultPartitions.Event(to), Data: m.Data}, jetstream.WithMsgID(m.Header.Get("id")))
			if err != nil {
				b.Error(err)
			}
			seen.arrived(m.Header.Get("id"))
		}
	}()
	source := agentLog(id.EntityFromExternal("copy"))
	b.ResetTimer()
	write(b, b.N, pace, func(agent, i int) {
		raw := servicetest.JSON(b, benchDelta("run", i))
		if _, err := conn.JS().PublishMsg(r.Ctx, &nats.Msg{Subject: subject.DefaultPartitions.Event(source), Data: raw}); err != nil {
			b.Error(err)
		}
		m := &nats.Msg{Subject: fmt.Sprint("copy.", agent), Data: raw, Header: nats.Header{"id": {fmt.Sprint("c", i)}}}
		seen.written(fmt.Sprint("c", i))
		if err := conn.NATS().PublishMsg(m); err != nil {
			b.Error(err)
		}
	})
	seen.report(b)
	if err := sub.Unsubscribe(); err != nil {
		b.Fatal(err)
	}
	close(in)
	<-done
}
