package client_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/client"
	"github.com/waggle-dev/waggle/cmd/waggle/client/clienttest"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
)

func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// seen collects what a client shows until an answer ends it.
type seen struct {
	frames []client.Frame
	lost   []error
	stop   context.CancelFunc
}

func (s *seen) Frame(f client.Frame) {
	s.frames = append(s.frames, f)
	if f.Event == myagent.AgentFinalAnswer {
		s.stop()
	}
}

func (s *seen) Lost(err error) { s.lost = append(s.lost, err) }

func (s *seen) seqs() []uint64 {
	var out []uint64
	for _, f := range s.frames {
		if f.Seq > 0 {
			out = append(out, f.Seq)
		}
	}
	return out
}

// run asks a question and returns what was seen when the answer was there.
func run(t testing.TB, opt client.Options) (*client.Client, *seen, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()
	c, s := client.New(opt), &seen{stop: cancel}
	c.Message(ctx, "q?", nil)
	return c, s, c.Run(ctx, s)
}

func echo(p *clienttest.Peer, seq uint64, in clienttest.In) {
	p.Send(myagent.Frame{Event: myagent.UserMessage, Seq: seq, Content: "q?", Metadata: map[string]any{"message_id": in.Metadata.MessageID, "run_id": "r"}})
}

func TestASessionOutlivesItsConnections(t *testing.T) {
	ids := make(chan string, 2)
	url := clienttest.Serve(t,
		func(p *clienttest.Peer) {
			hello := p.Create()
			require.Equal(p.T, myagent.UserCreateSession, hello.Event)
			ids <- p.Read().Metadata.MessageID
			p.Leave(1012)
		},
		func(p *clienttest.Peer) {
			hello := p.Read()
			require.Equal(p.T, myagent.UserReconnectWithState, hello.Event)
			require.Equal(p.T, clienttest.Session, hello.SessionID)
			require.JSONEq(p.T, `{"last_seq":1,"last_event_id":"1.1"}`, string(hello.Content))
			p.Replayed()
			in := p.Read() // nobody has shown that it arrived, so it comes again
			ids <- in.Metadata.MessageID
			echo(p, 2, in)
			p.Leave(4000)
		},
		func(p *clienttest.Peer) {
			hello := p.Read()
			require.JSONEq(p.T, `{"last_seq":2}`, string(hello.Content))
			p.Send(myagent.Frame{Event: myagent.AgentPartialAnswer, Seq: 4, Metadata: map[string]any{"merged_from": 3}})
			p.Replayed()
			p.Send(myagent.Frame{Event: myagent.AgentFinalAnswer, Seq: 5, EventID: "5.9"})
			require.EqualValues(p.T, 1000, p.Until(), "nothing is sent a third time")
		})
	c, s, err := run(t, client.Options{URL: url})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []uint64{1, 2, 4, 5}, s.seqs())
	require.Len(t, s.lost, 2)
	require.Equal(t, <-ids, <-ids, "the same message")
	require.Equal(t, clienttest.Session, c.Session())
	require.EqualValues(t, 5, c.Seq())
}

func TestEveryGapIsNoticed(t *testing.T) {
	for name, seqs := range map[string][]uint64{"a hole": {2, 4}, "a double": {2, 2}, "backwards": {2, 3, 1}} {
		t.Run(name, func(t *testing.T) {
			url := clienttest.Serve(t,
				func(p *clienttest.Peer) {
					p.Create()
					for _, n := range seqs {
						p.Send(myagent.Frame{Event: myagent.AgentThinking, Seq: n})
					}
					p.Until()
				},
				func(p *clienttest.Peer) {
					hello := p.Read()
					var content struct {
						LastSeq uint64 `json:"last_seq"`
					}
					require.NoError(p.T, json.Unmarshal(hello.Content, &content))
					p.Replayed()
					p.Send(myagent.Frame{Event: myagent.AgentFinalAnswer, Seq: content.LastSeq + 1})
					p.Until()
				})
			_, s, err := run(t, client.Options{URL: url})
			require.ErrorIs(t, err, context.Canceled)
			require.Len(t, s.lost, 1)
			var gap *client.GapError
			require.ErrorAs(t, s.lost[0], &gap)
		})
	}
}

func TestExpiredHistoryIsNoGap(t *testing.T) {
	url := clienttest.Serve(t, func(p *clienttest.Peer) {
		p.Read()
		p.Send(myagent.Frame{Event: myagent.SystemNotice, Metadata: myagent.NoticeMeta{Action: myagent.ActionHistoryExpired, FirstLeft: 40}})
		p.Send(myagent.Frame{Event: myagent.AgentThinking, Seq: 40})
		p.Replayed()
		p.Send(myagent.Frame{Event: myagent.AgentFinalAnswer, Seq: 41})
		p.Until()
	})
	_, s, err := run(t, client.Options{URL: url, Session: clienttest.Session})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, s.lost)
	require.Equal(t, []uint64{40, 41}, s.seqs())
}

func TestItGivesUpWhereComingBackIsPointless(t *testing.T) {
	for _, event := range []string{myagent.ErrorRecoveryFailed, myagent.ErrorValidation} {
		url := clienttest.Serve(t, func(p *clienttest.Peer) {
			p.Read()
			p.Send(myagent.Frame{Event: event, Content: "no such session\x1b[2J", Metadata: map[string]any{"error_code": "SESSION_EXPIRED"}})
			p.Until()
		})
		_, _, err := run(t, client.Options{URL: url, Session: clienttest.Session})
		require.EqualError(t, err, "no such session [SESSION_EXPIRED]")
	}
	_, _, err := run(t, client.Options{URL: clienttest.Serve(t)})
	require.ErrorContains(t, err, "HTTP 404")
}

// What the server could not take is sent again, on another connection.
func TestTroubleOfTheServerIsSatOut(t *testing.T) {
	url := clienttest.Serve(t,
		func(p *clienttest.Peer) {
			p.Create()
			p.Read()
			p.Send(myagent.Frame{Event: myagent.SystemError, Content: "the bus is away"})
			p.Until()
		},
		func(p *clienttest.Peer) {
			p.Read()
			p.Replayed()
			echo(p, 2, p.Read())
			p.Send(myagent.Frame{Event: myagent.AgentFinalAnswer, Seq: 3})
			p.Until()
		})
	_, s, err := run(t, client.Options{URL: url})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, s.lost[0], "the bus is away")
}

func TestEachConnectionMayGoElsewhere(t *testing.T) {
	second := clienttest.Serve(t, func(p *clienttest.Peer) {
		p.Read()
		p.Replayed()
		echo(p, 2, p.Read())
		p.Send(myagent.Frame{Event: myagent.AgentFinalAnswer, Seq: 3})
		p.Until()
	})
	first := clienttest.Serve(t, func(p *clienttest.Peer) { p.Create(); p.Leave(1012) })
	_, s, err := run(t, client.Options{URL: first, Next: func() string { return second }})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []uint64{1, 2, 3}, s.seqs())
}
