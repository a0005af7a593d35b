package link_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/sdk/go/link"
)

// FuzzFramesComeOnceAndInOrder plays a log of frames to a client whose connections break
// anywhere, in any way, to a server that may repeat what the client has; the client says
// something on the way. Each frame arrives once and in order, and so does what was said.
func FuzzFramesComeOnceAndInOrder(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed, uint8(seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, length uint8) {
		synctest.Test(t, func(t *testing.T) { play(t, rand.New(rand.NewPCG(seed, 1)), uint64(length)%64+1) })
	})
}

// moody is a server that leaves when it likes. It reports whether the client is still there.
type moody struct {
	rnd   *rand.Rand
	last  uint64   // of its log
	order []string // ids of what it was told, each once
}

// replay sends a part of the log.
func (m *moody) replay(p *pipe) bool {
	from := p.after() - min(p.after(), m.rnd.Uint64N(3)) // a server may repeat
	for seq := from + 1; seq <= m.last && m.rnd.IntN(4) > 0; seq++ {
		if !p.say(frame{Seq: seq}) {
			return false
		}
	}
	return true
}

// listen takes what the client says, and may leave before it says that it has it.
func (m *moody) listen(p *pipe) bool {
	for m.rnd.IntN(5) > 0 && (p.after() == m.last || len(m.order) < 3) {
		in, ok := p.hear()
		if !ok {
			return false
		}
		if !slices.Contains(m.order, in.ID) {
			m.order = append(m.order, in.ID)
		}
		if m.rnd.IntN(3) == 0 {
			return true
		}
		if !p.say(frame{ID: in.ID}) {
			return false
		}
	}
	return true
}

func (m *moody) end(p *pipe) {
	if code := ends[m.rnd.IntN(len(ends))]; code > 0 {
		p.leave(code)
	} else {
		p.end(context.DeadlineExceeded)
	}
}

var ends = []websocket.StatusCode{0, websocket.StatusServiceRestart, websocket.StatusGoingAway, websocket.StatusInternalError, 4000, 4399}

func play(t *testing.T, rnd *rand.Rand, last uint64) {
	m := &moody{rnd: rnd, last: last}
	s := serve(t, func(p *pipe) {
		if p.say(frame{Text: "welcome"}) && m.replay(p) && m.listen(p) {
			m.end(p)
		}
	})
	c := connect(link.Options{Dial: s.dial, MinBackoff: time.Millisecond, MaxBackoff: 8 * time.Millisecond}, false, nil)
	c.stop = func(frame) bool { return c.At() == last && c.Pending() == 0 }
	for _, id := range []string{"a", "b", "c"} {
		require.NoError(t, c.Send(link.Outgoing[frame]{
			Frame: func() []byte { return frame{ID: id}.bytes() }, Settled: func(f frame) bool { return f.ID == id },
		}))
	}
	require.ErrorIs(t, c.Run(t.Context()), errDone)
	next := uint64(1)
	for _, f := range c.got {
		if f.Seq > 0 {
			require.Equal(t, next, f.Seq)
			next++
		}
	}
	require.Equal(t, last+1, next)
	require.Equal(t, []string{"a", "b", "c"}, m.order, "in the order in which they were sent")
}

// run runs the link in the bubble and returns how it ended, and after how long.
func run(t *testing.T, c *client) (time.Duration, error) {
	t.Helper()
	began := time.Now()
	err := c.Run(t.Context())
	require.Equal(t, err, c.Err())
	<-c.Done()
	return time.Since(began), err
}

func TestFinalCodesEndTheLink(t *testing.T) {
	for _, code := range []websocket.StatusCode{1002, 1003, 1007, 1009, 4400, 4401, 4404, 4499} {
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, func(p *pipe) { p.say(frame{Seq: 1}); p.leave(code) })
			_, err := run(t, connect(link.Options{Dial: s.dial}, false, nil))
			var closed *link.ClosedError
			require.ErrorAs(t, err, &closed)
			require.EqualValues(t, code, closed.Code)
			require.Equal(t, "bye", closed.Reason)
		})
	}
}

func TestOtherCodesBringTheClientBack(t *testing.T) {
	for _, code := range []websocket.StatusCode{1000, 1001, 1008, 1011, 1012, 1013, 4000, 4001, 4399} {
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, func(p *pipe) { p.say(frame{Seq: 1}); p.leave(code) }, func(p *pipe) { p.say(frame{Seq: 2}) })
			_, err := run(t, connect(link.Options{Dial: s.dial}, true, func(f frame) bool { return f.Seq == 2 }))
			require.ErrorIs(t, err, errDone)
		})
	}
}

func TestATokenThatHasExpiredIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := 0
		s := serve(t, func(p *pipe) { p.say(frame{Seq: 1}); p.leave(4401) }, func(p *pipe) { p.say(frame{Seq: 2}) })
		c := connect(link.Options{Dial: s.dial, Token: func(context.Context) (string, error) {
			tokens++
			return string(rune('a' + tokens)), nil
		}}, false, func(f frame) bool { return f.Seq == 2 })
		_, err := run(t, c)
		require.ErrorIs(t, err, errDone)
		require.Equal(t, "Bearer b", s.conns[0].header.Get("Authorization"))
		require.Equal(t, "Bearer c", s.conns[1].header.Get("Authorization"))
	})
}

// refuse answers handshakes with a status until the time is over.
func refuse(s *server, status int, pause time.Duration, until time.Time) func(context.Context, string, http.Header) (link.Socket, error) {
	return func(ctx context.Context, address string, h http.Header) (link.Socket, error) {
		if time.Now().Before(until) {
			return nil, &link.RefusedError{Status: status, RetryAfter: pause, Err: errors.New("no WebSocket")}
		}
		return s.dial(ctx, address, h)
	}
}

func TestRefusals(t *testing.T) {
	for status, final := range map[int]bool{401: true, 403: true, 404: true, 429: false, 500: false, 503: false} {
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, func(p *pipe) { p.say(frame{Seq: 1}) })
			c := connect(link.Options{Dial: refuse(s, status, 7*time.Second, time.Now().Add(5*time.Second))}, false, func(frame) bool { return true })
			took, err := run(t, c)
			var refused *link.RefusedError
			if final {
				require.ErrorAs(t, err, &refused)
				require.Equal(t, status, refused.Status)
				return
			}
			require.ErrorIs(t, err, errDone)
			require.GreaterOrEqual(t, took, 7*time.Second, "the server has asked for the pause")
			require.Less(t, took, 8*time.Second)
		})
	}
}

func TestAGoodbyeMovesTheClientAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t,
			func(p *pipe) { p.say(frame{Seq: 1}); p.hear(); p.leave(websocket.StatusServiceRestart) },
			func(p *pipe) {
				p.say(frame{Seq: 2})
				in, _ := p.hear()
				p.say(frame{Seq: 3, ID: in.ID})
			})
		c := connect(link.Options{
			Dial: s.dial, URL: "ws://a/", Next: func() string { return "ws://b/" }, MinBackoff: 100 * time.Millisecond,
		}, true, func(f frame) bool { return f.Seq == 3 })
		require.NoError(t, c.Send(link.Outgoing[frame]{Frame: func() []byte { return frame{ID: "m"}.bytes() }, Settled: func(f frame) bool { return f.ID == "m" }}))
		took, err := run(t, c)
		require.ErrorIs(t, err, errDone)
		require.Less(t, took, 100*time.Millisecond)
		require.Equal(t, []frame{{Seq: 1}, {Seq: 2}, {Seq: 3, ID: "m"}}, c.got)
		require.Equal(t, "b", s.conns[1].address.Host)
		require.EqualValues(t, 1, s.conns[1].after())
		require.Zero(t, c.Pending())
	})
}

func TestADeadPeerIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost []error
		s := serve(t, func(p *pipe) { p.deaf.Store(true); p.say(frame{Seq: 1}); <-p.gone }, func(p *pipe) { p.say(frame{Seq: 2}) })
		c := connect(link.Options{Dial: s.dial, OnDown: func(err error) { lost = append(lost, err) }}, false, func(f frame) bool { return f.Seq == 2 })
		took, err := run(t, c)
		require.ErrorIs(t, err, errDone)
		require.Less(t, took, link.DefaultPing+link.DefaultPong+time.Second)
		require.Len(t, lost, 2)
	})
}

// A slow handler reads no pong meanwhile, and the link stays.
func TestABusyHandlerIsNoDeadPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, func(p *pipe) { p.deaf.Store(true); p.say(frame{Seq: 1}); p.say(frame{Seq: 2}); <-p.gone })
		c := connect(link.Options{Dial: s.dial}, false, func(f frame) bool {
			<-time.After(5 * time.Minute)
			return f.Seq == 2
		})
		_, err := run(t, c)
		require.ErrorIs(t, err, errDone)
		require.Len(t, s.conns, 1)
	})
}

func TestEveryGapOfAnExactLogIsNoticed(t *testing.T) {
	for name, second := range map[string]frame{"a hole": {Seq: 3}, "a double": {Seq: 1}, "a hole before a merged one": {From: 3, Seq: 5}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lost []error
				s := serve(t, func(p *pipe) { p.say(frame{Seq: 1}); p.say(second); <-p.gone }, func(p *pipe) { p.say(frame{From: 2, Seq: 4}) })
				c := connect(link.Options{Dial: s.dial, OnDown: func(err error) { lost = append(lost, err) }}, true, func(f frame) bool { return f.Seq == 4 })
				_, err := run(t, c)
				require.ErrorIs(t, err, errDone)
				var gap *link.GapError
				require.ErrorAs(t, lost[0], &gap)
				require.EqualValues(t, 1, gap.After)
			})
		})
	}
}

func TestAServerThatStaysAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, func(p *pipe) { p.say(frame{Seq: 1}); p.leave(1001) }, nil)
		took, err := run(t, connect(link.Options{Dial: s.dial, GiveUp: time.Minute}, false, nil))
		var away *link.AwayError
		require.ErrorAs(t, err, &away)
		require.Greater(t, took, time.Minute)
		require.Less(t, len(s.conns), 40, "the pauses grow")

		s = serve(t, nil)
		_, err = run(t, connect(link.Options{Dial: s.dial, Hasty: true}, false, nil))
		require.EqualError(t, err, "connect to ws://a/: connection refused")
		_, err = run(t, connect(link.Options{URL: "http://a/"}, false, nil))
		require.EqualError(t, err, `"http://a/" is not a ws:// or wss:// URL`)
	})
}

func TestTheListOfSendsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, func(p *pipe) { p.say(frame{ID: "x"}); <-p.gone })
		c := connect(link.Options{Dial: s.dial, Pending: 2}, false, nil)
		out := link.Outgoing[frame]{Frame: func() []byte { return frame{ID: "x"}.bytes() }, Settled: func(f frame) bool { return f.ID == "x" }}
		require.False(t, c.Tell(nil), "no connection")
		require.NoError(t, c.Send(out))
		require.NoError(t, c.Send(out))
		require.ErrorIs(t, c.Send(out), link.ErrFull)
		ended := make(chan error, 1)
		go func() { ended <- c.Run(t.Context()) }()
		synctest.Wait()
		require.NoError(t, c.Send(out), "one was settled")
		c.Close()
		require.ErrorIs(t, <-ended, link.ErrClosed)
		require.ErrorIs(t, c.Send(out), link.ErrClosed)
		_, err := c.Up(t.Context())
		require.ErrorIs(t, err, link.ErrClosed)
	})
}

// Frames that were told before Close are written before the goodbye.
func TestALinkLeavesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := make(chan frame, 10)
		s := serve(t, func(p *pipe) {
			p.say(frame{Seq: 1})
			<-p.gone
			for in, ok := p.hear(); ok; in, ok = p.hear() {
				heard <- in
			}
			close(heard)
		})
		c := connect(link.Options{Dial: s.dial}, false, nil)
		ended := make(chan error, 1)
		go func() { ended <- c.Run(t.Context()) }()
		conn, err := c.Up(t.Context())
		require.NoError(t, err)
		require.NoError(t, conn.Send(t.Context(), frame{ID: "1"}.bytes()))
		synctest.Wait()
		require.True(t, c.Tell(frame{ID: "2"}.bytes()))
		require.True(t, c.Tell(frame{ID: "3"}.bytes()))
		c.Close()
		require.ErrorIs(t, <-ended, link.ErrClosed)
		var ids []string
		for f := range heard {
			ids = append(ids, f.ID)
		}
		require.Equal(t, []string{"1", "2", "3"}, ids)
		var closed websocket.CloseError
		require.ErrorAs(t, s.conns[0].err, &closed)
		require.Equal(t, websocket.StatusNormalClosure, closed.Code)
		require.ErrorIs(t, conn.Send(t.Context(), nil), link.ErrLost)
	})
}

// TestARealHandshake: a real server's answer is read for its status and its pause.
func TestARealHandshake(t *testing.T) {
	for value, want := range map[string]time.Duration{"": 0, "3": 3 * time.Second, "x": 0, "-1": 0, "99999999": 5 * time.Minute} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			require.Equal(t, "1", r.URL.Query().Get("own"))
			require.Equal(t, "0", r.URL.Query().Get("after"))
			w.Header().Set("Retry-After", value)
			http.Error(w, "no", http.StatusServiceUnavailable)
		}))
		err := connect(link.Options{URL: "ws" + srv.URL[4:] + "/?own=1", Hasty: true}, false, nil).Run(t.Context())
		srv.Close()
		var refused *link.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, want, refused.RetryAfter)
		require.EqualError(t, err, "link: the server refused the connection (HTTP 503 Service Unavailable)")
	}
}

// Credentials are for the server that the options name: no redirect takes them elsewhere.
func TestRedirectsAreNotFollowed(t *testing.T) {
	asked := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header.Get("Authorization") }))
	t.Cleanup(other.Close)
	srv := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(srv.Close)
	token := func(context.Context) (string, error) { return "k3y", nil }
	err := connect(link.Options{URL: "ws" + srv.URL[4:], Token: token}, false, nil).Run(t.Context())
	var refused *link.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusTemporaryRedirect, refused.Status)
	require.Empty(t, asked)
}

// A frame beyond the client's limit would come again on every connection.
func TestAFrameThatIsTooLargeEndsTheLink(t *testing.T) {
	dials := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dials++
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		_ = c.Write(r.Context(), websocket.MessageText, make([]byte, 9<<20))
		_ = c.CloseNow()
	}))
	t.Cleanup(srv.Close)
	err := connect(link.Options{URL: "ws" + srv.URL[4:]}, false, nil).Run(t.Context())
	var closed *link.ClosedError
	require.ErrorAs(t, err, &closed)
	require.Equal(t, 1009, closed.Code)
	require.Equal(t, 1, dials)
}
