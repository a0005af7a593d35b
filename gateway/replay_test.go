package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/gateway/stream"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// resume asks for a session from a seq on.
func (c *client) resume(l subject.Log, after uint64, more ...func(*multiRequest)) {
	c.t.Helper()
	a := multiRequest{Ask: "resume", Session: l.Entity.String(), After: &after}
	for _, f := range more {
		f(&a)
	}
	c.ask(a)
}

func inBatches(a *multiRequest) { a.Batch = true }
func merged(a *multiRequest)    { a.Merge = true }

// replayed reads the notice that ends a replay.
func (c *client) replayed(l subject.Log, count int, seq uint64) multiFrame {
	c.t.Helper()
	s := c.expectFrame("replayed")
	require.Equal(c.t, l.Entity.String(), s.Session)
	require.Equal(c.t, count, s.Count)
	require.Equal(c.t, seq, s.Seq)
	require.True(c.t, strings.HasPrefix(s.Cursor, fmt.Sprint(seq)), s.Cursor)
	return s
}

// Missed events come one by one, then the notice, then new events. The position may be a seq,
// an event_id, or the client's last acknowledgement.
func TestResumeOfASession(t *testing.T) {
	r, o := startMulti(t)
	l := r.session("default", "two", "three", "four")
	c, link := r.dialMulti()
	c.resume(l, 1)
	c.expectEvents(l, 2, 4)
	s := c.replayed(l, 3, 4)
	require.Equal(t, link, s.Link)
	require.Nil(t, s.Matched)
	r.answers(l, "five")
	c.expectEvents(l, 5, 5)

	o.acked[l.Entity.String()+" phone"] = 3
	c, _ = r.dialMulti()
	c.ask(multiRequest{Ask: "resume", Session: l.Entity.String(), Client: "phone", Hash: "right"})
	c.expectEvents(l, 4, 5)
	require.True(t, *c.replayed(l, 2, 5).Matched)
	c.ask(multiRequest{Ask: "resume", Session: l.Entity.String(), EventID: s.Cursor, After: ptr(uint64(1)), Hash: "wrong"})
	c.expectEvents(l, 5, 5)
	require.False(t, *c.replayed(l, 1, 5).Matched)
	c.resume(l, 5)
	c.replayed(l, 0, 5)
	r.answers(l, "six")
	c.expectEvents(l, 6, 6)
	c.resume(l, 99)
	require.Equal(t, "CURSOR_INVALID", c.expectFrame("refused").Code)
	r.answers(l, "seven")
	c.expectEvents(l, 7, 7) // a refused resume changes nothing
}

// Resumes while events come: after each of them everything from its position on is
// shown, once, and its notice comes right after the event that it names.
func TestResumesWhileEventsCome(t *testing.T) {
	t.Parallel()
	const resumes, before = 25, 50
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	r, _ := startMulti(t, unlimited)
	l := r.session("default")
	r.many(l, before)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				r.answers(l, "more")
			}
		}
	}()
	c, _ := r.dialMulti()
	asked := make([]uint64, resumes)
	for i := range asked {
		asked[i] = dice.Uint64N(before)
		c.resume(l, asked[i])
	}
	last, open := uint64(0), 0 // open: resumes of which the first event has come
	for notices := 0; notices < resumes; {
		b, err := c.text()
		require.NoError(t, err)
		s, err := readMulti(b)
		require.NoError(t, err)
		if s.Kind == "replayed" {
			require.Equal(t, last, s.Seq, "notice %d", notices)
			for open < resumes && asked[open-1]+uint64(s.Count) != s.Seq {
				open++ // the one before was overtaken exactly where this one begins
			}
			require.Equal(t, asked[open-1]+uint64(s.Count), s.Seq)
			notices = open // a resume that was overtaken by the next has none
			continue
		}
		if s.Seq != last+1 || open == 0 {
			for open < resumes && asked[open]+1 != s.Seq {
				open++ // overtaken before its first event
			}
			require.Less(t, open, resumes, "event %d after %d is of no resume", s.Seq, last)
			open++
		}
		last = s.Seq
	}
	close(stop)
	<-stopped
	end, err := r.log.Last(context.Background(), l)
	require.NoError(t, err)
	for last < end.Seq {
		s := c.expectFrame("event")
		require.Equal(t, last+1, s.Seq)
		last = s.Seq
	}
}

// With batches the same events come in few frames, bounded in events and in bytes.
func TestReplayInBatches(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text                 string
		missed, frames, most int // most: events in a frame
	}{
		"small events": {ordinary, 501, 5, stream.MaxBatch}, "large events": {strings.Repeat("x", 100<<10), 10, 10, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := startMulti(t)
			l := r.session("default", slices.Repeat([]string{c.text}, c.missed)...)
			client, _ := r.dialMulti()
			client.resume(l, 1, inBatches)
			frames := 0
			for next := 2; next < c.missed+2; frames++ {
				s := client.expectFrame("batch")
				require.LessOrEqual(t, len(s.Events), c.most)
				for _, e := range s.Events {
					require.EqualValues(t, next, e.Seq)
					next++
				}
			}
			client.replayed(l, c.missed, uint64(c.missed+1))
			r.answers(l, "live")
			client.expectEvents(l, uint64(c.missed+2), uint64(c.missed+2))
			require.LessOrEqual(t, frames, c.frames)
		})
	}
}

// deltas appends the pieces of a message.
func (r *rig) deltas(l subject.Log, message string, n int) (whole string) {
	r.t.Helper()
	var b strings.Builder
	for i := range n {
		piece := fmt.Sprintf("%d ", i)
		b.WriteString(piece)
		require.NoError(r.t, r.append(l, unique(), event.MessageDeltaData{MessageID: message, RunID: "r", ExecutionID: "exec_x", Attempt: 1, Text: piece}))
	}
	return b.String()
}

// On request consecutive pieces of a text come as one, with the seq of the last and
// word of the first; live they come as they are.
func TestReplayMerged(t *testing.T) {
	r, _ := startMulti(t)
	l := r.session("default")
	one := r.deltas(l, "m1", 100)
	two := r.deltas(l, "m2", 50)
	r.answers(l, "end")
	for _, more := range [][]func(*multiRequest){{merged}, {merged, inBatches}} {
		c, _ := r.dialMulti()
		c.resume(l, 1, more...)
		texts := map[string]string{}
		for next := uint64(2); next <= 152; {
			events := []multiFrame{}
			if len(more) > 1 {
				events = c.expectFrame("batch").Events
			} else {
				events = append(events, c.expectFrame("event"))
			}
			for _, s := range events {
				if s.From == 0 {
					s.From = s.Seq
				}
				require.Equal(t, next, s.From, "no event is left out")
				next = s.Seq + 1
				var f framed
				var text string
				require.NoError(t, json.Unmarshal(s.Data, &f))
				if f.Event == wire.AgentPartialAnswer {
					require.NoError(t, json.Unmarshal(f.Content, &text))
					texts[f.Metadata.MessageID] += text
				}
			}
		}
		require.Equal(t, one, texts["m1"])
		require.Equal(t, two, texts["m2"])
		c.replayed(l, 151, 152)
		_ = c.Conn.Close()
	}
	c, _ := r.dialMulti()
	c.resume(l, 152, merged)
	c.replayed(l, 0, 152)
	r.deltas(l, "m3", 5)
	c.expectEvents(l, 153, 157)
}

// expire makes the events of a log before its last few go.
func (r *rig) expire(l subject.Log, keep uint64) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	s, err := r.conn.JS().Stream(ctx, subject.DefaultPartitions.Stream(l))
	require.NoError(r.t, err)
	require.NoError(r.t, s.Purge(ctx, jetstream.WithPurgeSubject(subject.DefaultPartitions.Event(l)), jetstream.WithPurgeKeep(keep)))
}

// A client that asks for expired history learns where the rest begins, gets the state, then the
// rest; also if the history expires during the request.
func TestReplayOfExpiredHistory(t *testing.T) {
	for _, blind := range []bool{false, true} {
		r, o := startMulti(t)
		o.blind = blind
		l := r.session("default", "two", "three", "four", "five")
		r.expire(l, 2)
		for _, more := range [][]func(*multiRequest){nil, {inBatches}} {
			c, _ := r.dialMulti()
			c.resume(l, 1, more...)
			require.EqualValues(t, 4, c.expectFrame("expired").Seq)
			require.EqualValues(t, 5, c.expectFrame("exported").Seq)
			if more == nil {
				c.expectEvents(l, 4, 5)
			} else {
				require.Len(t, c.expectFrame("batch").Events, 2)
			}
			c.replayed(l, 2, 5)
			c.ask(multiRequest{Ask: "ack", Session: l.Entity.String(), After: ptr(uint64(5))})
			r.answers(l, "more")
			c.expectFrame("event")
			_ = c.Conn.Close()
			r.expire(l, 1)
			l = r.session("default", "two", "three", "four", "five")
			r.expire(l, 2)
		}
	}
}

// Three sessions share a queue that is full all the time: each gets everything, in
// order, and none waits for the end of another.
func TestSessionsShareAQueue(t *testing.T) {
	t.Parallel()
	const events = 200
	r, _ := startMulti(t, func(c *gateway.Config, _ *gateway.Deps) { c.QueueBytes = 32 << 10 })
	logs := []subject.Log{r.session("default"), r.session("default"), r.session("default")}
	for _, l := range logs {
		texts := slices.Repeat([]string{strings.Repeat("x", 4<<10)}, events)
		r.answers(l, texts...)
	}
	c, _ := r.dialMulti()
	tc, ok := c.Conn.(*net.TCPConn)
	require.True(t, ok)
	require.NoError(t, tc.SetReadBuffer(16<<10)) // so that the kernel does not take it all
	for _, l := range logs {
		c.resume(l, 1)
	}
	eventually(t, "all have begun, and the queue is full", func() bool {
		return r.metric("waggle_gateway_sessions") == float64(len(logs)) && r.metric("waggle_gateway_lag_entries_total") >= float64(len(logs))
	})
	next, window := map[string]uint64{}, map[string]int{}
	for ended := 0; ended < len(logs); {
		b, err := c.text()
		require.NoError(t, err)
		s, err := readMulti(b)
		require.NoError(t, err)
		if s.Kind == "replayed" {
			ended++
			continue
		}
		require.Equal(t, max(next[s.Session], 1)+1, s.Seq, "%s", b)
		next[s.Session] = s.Seq
		if ended == 0 && len(next) == len(logs) { // all are waiting for room, and none has all it wants
			window[s.Session]++
		}
	}
	require.Len(t, window, len(logs), "a session got nothing while others did")
	t.Logf("while all wait for room, the sessions get %v frames", slices.Collect(maps.Values(window)))
}

// The gateway sends on the highest acknowledgement of each client, at intervals and when the
// socket ends. It drops acknowledgements of events that it has not sent.
func TestAcknowledgements(t *testing.T) {
	t.Parallel()
	r, _ := startMulti(t, func(c *gateway.Config, _ *gateway.Deps) { c.AckInterval, c.MessageBurst = 2*time.Second, 1000 })
	l := r.session("default", "two", "three", "four", "five")
	c, _ := r.dialMulti()
	c.ask(multiRequest{Ask: "resume", Session: l.Entity.String(), After: ptr(uint64(0)), Client: "phone"})
	c.expectEvents(l, 1, 5)
	c.expectFrame("replayed")
	ack := func(client string, seq uint64, eventID string) []byte {
		b, err := json.Marshal(multiRequest{Ask: "ack", Session: l.Entity.String(), Client: client, After: &seq, EventID: eventID}.message())
		require.NoError(t, err)
		return frame(fin|opText, b)
	}
	var all []byte // in one piece: no interval ends within it
	for _, seq := range []uint64{1, 3, 4, 2, 6, 1 << 60, 0} {
		all = join(all, ack("phone", seq, ""), ack("", seq, ""), ack("tablet", 99, fmt.Sprintf("%d.77", min(seq, 3))))
	}
	c.write(all)
	c.ask(multiRequest{Ask: "ack", Client: "tablet", After: ptr(uint64(1))}) // of the only session
	c.write(ack("x", 0, "nonsense"))                                         // which has no answer
	highest := map[string]uint64{}
	commands := 0
	next := func() {
		got := r.nextCommand(l.Entity.String())
		require.Equal(t, wirecmd.Ack, got.Verb)
		var a wirecmd.AckEvents
		require.NoError(t, got.Decode(&a))
		require.Greater(t, a.Seq, highest[a.ClientID], "sent twice")
		highest[a.ClientID] = a.Seq
		commands++
	}
	for highest["phone"] < 4 || highest["tablet"] < 3 {
		next()
	}
	require.LessOrEqual(t, commands, 4, "21 acknowledgements of two clients")
	c.write(ack("phone", 5, ""))
	c.leave()
	next()
	require.EqualValues(t, 5, highest["phone"], "what was not sent is sent when the socket ends")
	eventually(t, "the socket is gone", func() bool { return r.metric("waggle_gateway_connections") == 0 })
	require.Empty(t, r.inbox(l.Entity.String()))
}
