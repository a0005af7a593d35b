package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
)

const (
	benchChats    = 8  // that ask at once
	benchSessions = 5  // that each of them opens in its turn, one after the other
	benchRuns     = 20 // of a session
)

// BenchmarkRun measures answers of one line of the demo model, by chats that ask one question after the other, beside the
// bare protocol: what a run writes to JetStream, with nothing else. It reports the processor time of a run on both sides,
// their ratio and the runs a second. That of Waggle is its whole process: gateway, services, worker and NATS server; that of
// the bare protocol is a NATS server and its client. The sides take turns, so that what disturbs disturbs both.
func BenchmarkRun(b *testing.B) {
	i, bare := startForCost(b), newBareProtocol(b)
	busy := func() time.Duration {
		seconds, err := strconv.ParseFloat(i.metric(b, "process_cpu_seconds_total"), 64)
		require.NoError(b, err)
		return time.Duration(seconds * float64(time.Second))
	}
	chats := func() {
		var all sync.WaitGroup
		for range benchChats {
			all.Go(func() {
				for range benchSessions {
					c := i.talk(b)
					for range benchRuns {
						c.ask("what is 2+3?")
					}
					_ = c.conn.CloseNow()
				}
			})
		}
		all.Wait()
	}
	chats() // caches and pools fill
	var ours, theirs, took, theyTook time.Duration
	for b.Loop() {
		before, began := busy(), time.Now()
		chats()
		ours, took = ours+busy()-before, took+time.Since(began)
		before, began = ownTime(b), time.Now()
		bare.runs(benchChats, benchSessions*benchRuns)
		theirs, theyTook = theirs+ownTime(b)-before, theyTook+time.Since(began)
	}
	runs := float64(b.N * benchChats * benchSessions * benchRuns)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ours.Seconds()*1e3/runs, "cpu-ms/run")
	b.ReportMetric(theirs.Seconds()*1e3/runs, "bare-cpu-ms/run")
	b.ReportMetric(float64(ours)/float64(theirs), "ratio")
	b.ReportMetric(runs/took.Seconds(), "runs/s")
	b.ReportMetric(runs/theyTook.Seconds(), "bare-runs/s")
}

// BenchmarkFirstToken measures the time from a question to the first token of its answer, in an idle installation.
func BenchmarkFirstToken(b *testing.B) {
	i := startForCost(b)
	c := talkTo(b, i.ws+"?deltas=true")
	var waits []time.Duration
	for b.Loop() {
		began := time.Now()
		c.send("what is 2+3?")
		c.until("agent_delta")
		waits = append(waits, time.Since(began))
		c.until("agent_response")
	}
	slices.Sort(waits)
	b.ReportMetric(float64(waits[len(waits)/2].Microseconds())/1e3, "p50-ms")
	b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds())/1e3, "p99-ms")
}

// ownTime returns the processor time of this process.
func ownTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// bareProtocol does what a run does to JetStream: seven events into a log, each with an announcement, and three commands. The
// events are appended one after the other, by three parties that hand over by command.
type bareProtocol struct {
	b     *testing.B
	conn  *bus.Conn
	ended sync.Map // channels by chat
}

// The parties append so many events each.
var bareParts = []int{1, 2, 4}

func newBareProtocol(b *testing.B) *bareProtocol {
	b.Helper()
	p := &bareProtocol{b: b, conn: bustest.Single(b)}
	js := p.conn.JS()
	_, err := js.CreateStream(b.Context(), jetstream.StreamConfig{
		Name: "BARE", Subjects: []string{"bare.evt.>"}, Storage: jetstream.FileStorage, Compression: jetstream.S2Compression, AllowDirect: true,
	})
	require.NoError(b, err)
	_, err = js.CreateStream(b.Context(), jetstream.StreamConfig{
		Name: "BARECMD", Subjects: []string{"bare.cmd.>"}, Storage: jetstream.FileStorage, Retention: jetstream.WorkQueuePolicy,
	})
	require.NoError(b, err)
	for n := range bareParts {
		p.serve(n)
	}
	_, err = p.conn.NATS().Subscribe("bare.live.*.*.done", func(m *nats.Msg) {
		var chat int
		_, err := fmt.Sscanf(m.Subject, "bare.live.%d.", &chat)
		require.NoError(b, err)
		ended, _ := p.ended.Load(chat)
		ended.(chan struct{}) <- struct{}{} //nolint:forcetypeassert // see runs
	})
	require.NoError(b, err)
	return p
}

// serve handles the commands of one party.
func (p *bareProtocol) serve(n int) {
	consumer, err := p.conn.JS().CreateConsumer(p.b.Context(), "BARECMD", jetstream.ConsumerConfig{
		Durable: fmt.Sprint("party", n), AckPolicy: jetstream.AckExplicitPolicy, FilterSubject: fmt.Sprintf("bare.cmd.%d.>", n),
	})
	require.NoError(p.b, err)
	event, err := json.Marshal(map[string]any{"type": "message.delta", "time": time.Now(), "data": map[string]string{
		"run_id": "run_0123456789ab", "message_id": "msg_0123456789ab", "text": "the quick brown fox jumps over the lazy dog",
	}})
	require.NoError(p.b, err)
	consuming, err := consumer.Consume(func(m jetstream.Msg) {
		go func() { // the chats are independent of each other
			var chat, run int
			_, err := fmt.Sscanf(m.Subject(), fmt.Sprintf("bare.cmd.%d.%%d.%%d", n), &chat, &run)
			require.NoError(p.b, err)
			p.part(n, chat, run, event)
			require.NoError(p.b, m.Ack())
		}()
	})
	require.NoError(p.b, err)
	p.b.Cleanup(consuming.Stop)
}

// part appends the events of one party and hands over to the next.
func (p *bareProtocol) part(n, chat, run int, event []byte) {
	for range bareParts[n] {
		_, err := p.conn.JS().Publish(p.b.Context(), fmt.Sprintf("bare.evt.%d", chat), event)
		require.NoError(p.b, err)
		require.NoError(p.b, p.conn.NATS().Publish(fmt.Sprintf("bare.live.%d.%d", chat, run), event))
	}
	if n == len(bareParts)-1 {
		require.NoError(p.b, p.conn.NATS().Publish(fmt.Sprintf("bare.live.%d.%d.done", chat, run), nil))
		return
	}
	p.command(n+1, chat, run)
}

func (p *bareProtocol) command(n, chat, run int) {
	_, err := p.conn.JS().Publish(p.b.Context(), fmt.Sprintf("bare.cmd.%d.%d.%d", n, chat, run), []byte(`{"id":"msg_0123456789ab","content":"what is 2+3?"}`))
	require.NoError(p.b, err)
}

// runs does so many runs in each chat, one after the other.
func (p *bareProtocol) runs(chats, runs int) {
	var all sync.WaitGroup
	for chat := range chats {
		ended := make(chan struct{}, 1)
		p.ended.Store(chat, ended)
		all.Go(func() {
			for run := range runs {
				p.command(0, chat, run)
				<-ended
			}
		})
	}
	all.Wait()
}
