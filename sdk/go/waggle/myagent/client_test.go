package myagent_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/sdk/go/link"
	"github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
	"github.com/waggle-dev/waggle/sdk/go/waggle/myagent/myagenttest"
)

func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// seen collects what a client shows until an answer ends it.
type seen struct {
	frames []myagent.Frame
	lost   []error
	stop   context.CancelFunc
}

func (s *seen) Frame(f myagent.Frame) {
	s.frames = append(s.frames, f)
	if f.Event == wire.AgentFinalAnswer {
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
func run(t testing.TB, opt myagent.Options) (*myagent.Client, *seen, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()
	c, s := myagent.New(opt), &seen{stop: cancel}
	_, err := c.Message("q?", nil)
	require.NoError(t, err)
	return c, s, c.Run(ctx, s)
}

func echo(p *myagenttest.Peer, seq uint64, in myagenttest.In) {
	p.Send(wire.Frame{Event: wire.UserMessage, Seq: seq, Content: "q?", Metadata: map[string]any{"message_id": in.Metadata.MessageID, "run_id": "r"}})
}

func TestASessionOutlivesItsConnections(t *testing.T) {
	ids := make(chan string, 2)
	url := myagenttest.Serve(t,
		func(p *myagenttest.Peer) {
			hello := p.Create()
			require.Equal(p.T, wire.UserCreateSession, hello.Event)
			ids <- p.Read().Metadata.MessageID
			p.Leave(1012)
		},
		func(p *myagenttest.Peer) {
			hello := p.Read()
			require.Equal(p.T, wire.UserReconnectWithState, hello.Event)
			require.Equal(p.T, myagenttest.Session, hello.SessionID)
			require.JSONEq(p.T, `{"last_seq":1,"last_event_id":"1.1"}`, string(hello.Content))
			p.Replayed()
			in := p.Read() // no frame has shown that it arrived, so it comes again
			ids <- in.Metadata.MessageID
			echo(p, 2, in)
			p.Leave(4000)
		},
		func(p *myagenttest.Peer) {
			hello := p.Read()
			require.JSONEq(p.T, `{"last_seq":2}`, string(hello.Content))
			p.Send(wire.Frame{Event: wire.AgentPartialAnswer, Seq: 4, Metadata: map[string]any{"merged_from": 3}})
			p.Replayed()
			p.Send(wire.Frame{Event: wire.AgentFinalAnswer, Seq: 5, EventID: "5.9"})
			require.EqualValues(p.T, 1000, p.Until(), "nothing is sent a third time")
		})
	c, s, err := run(t, myagent.Options{URL: url})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []uint64{1, 2, 4, 5}, s.seqs())
	require.Len(t, s.lost, 2)
	require.Equal(t, <-ids, <-ids, "the same message")
	require.Equal(t, myagenttest.Session, c.Session())
	require.EqualValues(t, 5, c.Seq())
}

func TestEveryGapIsNoticed(t *testing.T) {
	for name, seqs := range map[string][]uint64{"a hole": {2, 4}, "a double": {2, 2}, "backwards": {2, 3, 1}} {
		t.Run(name, func(t *testing.T) {
			url := myagenttest.Serve(t,
				func(p *myagenttest.Peer) {
					p.Create()
					for _, n := range seqs {
						p.Send(wire.Frame{Event: wire.AgentThinking, Seq: n})
					}
					p.Until()
				},
				func(p *myagenttest.Peer) {
					hello := p.Read()
					var content struct {
						LastSeq uint64 `json:"last_seq"`
					}
					require.NoError(p.T, json.Unmarshal(hello.Content, &content))
					p.Replayed()
					p.Send(wire.Frame{Event: wire.AgentFinalAnswer, Seq: content.LastSeq + 1})
					p.Until()
				})
			_, s, err := run(t, myagent.Options{URL: url})
			require.ErrorIs(t, err, context.Canceled)
			require.Len(t, s.lost, 1)
			var gap *link.GapError
			require.ErrorAs(t, s.lost[0], &gap)
		})
	}
}

func TestExpiredHistoryIsNoGap(t *testing.T) {
	url := myagenttest.Serve(t, func(p *myagenttest.Peer) {
		p.Read()
		p.Send(wire.Frame{Event: wire.SystemNotice, Metadata: wire.NoticeMeta{Action: wire.ActionHistoryExpired, FirstLeft: 40}})
		p.Send(wire.Frame{Event: wire.AgentThinking, Seq: 40})
		p.Replayed()
		p.Send(wire.Frame{Event: wire.AgentFinalAnswer, Seq: 41})
		p.Until()
	})
	_, s, err := run(t, myagent.Options{URL: url, Session: myagenttest.Session})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, s.lost)
	require.Equal(t, []uint64{40, 41}, s.seqs())
}

func TestItGivesUpWhereComingBackIsPointless(t *testing.T) {
	for _, event := range []string{wire.ErrorRecoveryFailed, wire.ErrorValidation} {
		url := myagenttest.Serve(t, func(p *myagenttest.Peer) {
			p.Read()
			p.Send(wire.Frame{Event: event, Content: "no such session", Metadata: map[string]any{"error_code": "SESSION_EXPIRED"}})
			p.Until()
		})
		_, _, err := run(t, myagent.Options{URL: url, Session: myagenttest.Session})
		require.EqualError(t, err, "no such session [SESSION_EXPIRED]")
	}
	_, _, err := run(t, myagent.Options{URL: myagenttest.Serve(t)})
	require.ErrorContains(t, err, "HTTP 404")
}

// A frame that the server could not accept is sent again, on another connection.
func TestTroubleOfTheServerIsSatOut(t *testing.T) {
	url := myagenttest.Serve(t,
		func(p *myagenttest.Peer) {
			p.Create()
			p.Read()
			p.Send(wire.Frame{Event: wire.SystemError, Content: "the bus is away"})
			p.Until()
		},
		func(p *myagenttest.Peer) {
			p.Read()
			p.Replayed()
			echo(p, 2, p.Read())
			p.Send(wire.Frame{Event: wire.AgentFinalAnswer, Seq: 3})
			p.Until()
		})
	_, s, err := run(t, myagent.Options{URL: url})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, s.lost[0], "the bus is away")
}

func TestEachConnectionMayGoElsewhere(t *testing.T) {
	second := myagenttest.Serve(t, func(p *myagenttest.Peer) {
		p.Read()
		p.Replayed()
		echo(p, 2, p.Read())
		p.Send(wire.Frame{Event: wire.AgentFinalAnswer, Seq: 3})
		p.Until()
	})
	first := myagenttest.Serve(t, func(p *myagenttest.Peer) { p.Create(); p.Leave(1012) })
	_, s, err := run(t, myagent.Options{URL: first, Next: func() string { return second }})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []uint64{1, 2, 3}, s.seqs())
}
