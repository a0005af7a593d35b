package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

func logOf(session string) subject.Log {
	return subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal(session)}
}

// storedOf returns the types of a session's events as the stream has them.
func storedOf(t *testing.T, nc *nats.Conn, session string) (types []string) {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	ctx, cancel := process.Within(process.MaxWait)
	defer cancel()
	log := logOf(session)
	s, err := js.Stream(ctx, subject.DefaultPartitions.Stream(log))
	require.NoError(t, err)
	for seq := uint64(1); ; {
		m, err := s.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(subject.DefaultPartitions.Event(log)))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return types
		}
		require.NoError(t, err)
		types = append(types, m.Header.Get(event.HeaderType))
		seq = m.Sequence + 1
	}
}

// remove asks a gateway to delete a session and returns the status of the answer.
func remove(t *testing.T, addr, session string) int {
	t.Helper()
	ctx, cancel := process.Within(process.MaxWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, "http://"+addr+"/api/v1/sessions/"+session, nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// ends reads until the socket is closed and returns the last frame and the close code.
func ends(c *client.Orbit) (last client.OrbitFrame, code int) {
	for {
		f, err := c.Next()
		if err != nil {
			return last, client.CloseCode(err)
		}
		last = f
	}
}

// peek reads until a frame fits, whatever was skipped before it.
func peek(t *testing.T, m *client.RawMyAgent, what string, is func(sdk.Frame) bool) sdk.Frame {
	t.Helper()
	for {
		f, err := m.Peek()
		require.NoError(t, err, "while waiting for %s", what)
		if is(f) {
			return f
		}
	}
}

func wasDeleted(f sdk.Frame) bool {
	return f.Event == myagent.AgentSessionEnd && sdk.As[myagent.SessionEndMeta](f.Metadata).Reason == "deleted"
}

func saysDeleted(f sdk.Frame) bool {
	return f.Event == myagent.ErrorRecoveryFailed && bytes.Contains(f.Raw, []byte(`"SESSION_DELETED"`))
}

// TestADeletedSessionEndsForAllViewers: in the middle of a run that is watched in two
// protocols on two gateways. The model's request is closed, every viewer is told, nothing
// is stored but the tombstone, and who comes back is told at once.
func TestADeletedSessionEndsForAllViewers(t *testing.T) {
	t.Parallel()
	f := newFleet(t, endless())
	f.serve(everyone)
	_, first := f.gateway()
	_, second := f.gateway()
	bus := f.listen()
	for _, stage := range []string{"plan", "solve", "aggregate"} {
		owner := client.DialMyAgent(t, first)
		owner.Create("en_US", nil)
		session := owner.Session
		page := client.DialOrbit(t, fmt.Sprintf("ws://%s/ws?session=%s&after=0", second, session))
		phone := client.DialMyAgent(t, second)
		phone.Attach(session, 0)
		question := "hang in " + stage
		owner.Message(question, nil)
		request := waitingIn(t, f.llm, stage, question)
		page.Until("execution_status", "agent_thinking", "agent_response", "tool_call")

		require.Equal(t, http.StatusNoContent, remove(t, second, session), stage)
		<-request.Gone()
		require.Equal(t, []string{string(event.SessionDeleted)}, storedOf(t, bus, session), stage)
		peek(t, owner, "the end", wasDeleted)
		peek(t, phone, "the end", wasDeleted)
		last, code := ends(page)
		require.Contains(t, last.Raw, `"SESSION_DELETED"`)
		require.Equal(t, 4410, code)

		for _, after := range []uint64{0, page.LastSeq, 1 << 40} {
			last, code = ends(client.DialOrbit(t, fmt.Sprintf("ws://%s/ws?session=%s&after=%d", first, session, after)))
			require.Contains(t, last.Raw, `"SESSION_DELETED"`, "after %d", after)
			require.Equal(t, 4410, code)
		}
		last, code = ends(client.DialOrbit(t, fmt.Sprintf("ws://%s/ws?watch=session/%s", first, session)))
		require.Contains(t, last.Raw, `"SESSION_DELETED"`)
		require.Equal(t, 4410, code)
		last, code = ends(client.DialOrbit(t, fmt.Sprintf("ws://%s/ws?session=nobody", first)))
		require.Contains(t, last.Raw, `"SESSION_NOT_FOUND"`)
		require.Equal(t, 4404, code)

		owner.Message("hello?", nil)
		peek(t, owner, "the refusal", saysDeleted)
		phone.Send(myagent.UserReconnectWithState, map[string]any{"content": map[string]any{"last_seq": 1}})
		peek(t, phone, "the refusal", saysDeleted)
		owner.Session = ""
		owner.Send(myagent.UserCreateSession, map[string]any{"content": map[string]any{"client_id": "browser_1"}, "metadata": map[string]any{"source": "web"}})
		fresh := peek(t, owner, "another session on the same socket", func(f sdk.Frame) bool { return f.Event == myagent.AgentSessionCreated })
		require.NotEqual(t, session, fresh.SessionID)
		require.Equal(t, http.StatusNoContent, remove(t, first, session), "once more")
		require.NotContains(t, process.Get(t, "http://"+first+"/api/v1/sessions").Body, session)
		require.Equal(t, []string{string(event.SessionDeleted)}, storedOf(t, bus, session), "nothing has come to life again")
	}
}

// line is a connection to NATS that is cut off when a request for a purge passes.
type line struct {
	listener net.Listener
	to       string
	marker   []byte
	deliver  bool // the request still arrives, its answer does not
	passed   chan struct{}
	once     sync.Once
}

func cutAt(t *testing.T, natsURL, marker string, deliver bool) *line {
	t.Helper()
	u, err := url.Parse(natsURL)
	require.NoError(t, err)
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &line{listener: l, to: u.Host, marker: []byte(marker), deliver: deliver, passed: make(chan struct{})}
	go p.accept()
	t.Cleanup(func() { _ = l.Close() })
	return p
}

func (p *line) url() string { return "nats://" + p.listener.Addr().String() }

func (p *line) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		s, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.to)
		if err != nil {
			_ = c.Close()
			continue
		}
		go p.up(c, s)
		go p.down(c, s)
	}
}

// up passes on what the process sends, until the marker is in it.
func (p *line) up(from, to net.Conn) {
	defer func() { _ = to.Close() }()
	buf, tail := make([]byte, 64<<10), []byte(nil)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		met := bytes.Contains(append(tail, buf[:n]...), p.marker)
		if met && !p.deliver {
			p.once.Do(func() { close(p.passed) })
			_, _ = io.Copy(io.Discard, from) // it never learns of it
			return
		}
		if met {
			p.once.Do(func() { close(p.passed) })
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
		tail = bytes.Clone(buf[max(0, n-len(p.marker)):n])
	}
}

// down passes on what the server sends, until the marker has passed.
func (p *line) down(to, from net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			_ = to.Close()
			return
		}
		select {
		case <-p.passed:
			_, _ = io.Copy(io.Discard, from)
			return
		default:
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// TestADeletionOutlivesItsService: the process that deletes is killed after it has
// appended the tombstone and before it has removed anything, and after it has removed
// all and before it knows. The next one finishes, and viewers see one end.
func TestADeletionOutlivesItsService(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]struct {
		marker  string
		deliver bool
		left    func([]string) bool
	}{
		"before the purge": {"$JS.API.STREAM.PURGE.", false, func(left []string) bool { return len(left) > 2 }},
		"after the purge":  {"$JS.API.STREAM.PURGE.EVT_", true, func(left []string) bool { return len(left) == 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, endless())
			f.serve("pipeline,worker,tools")
			direct := f.nats
			p := cutAt(t, f.nats, cut.marker, cut.deliver)
			f.nats = p.url()
			doomed := f.serve("session")
			f.nats = direct
			_, addr := f.gateway()
			bus := f.listen()
			m := client.DialMyAgent(t, addr)
			m.Create("en_US", nil)
			m.Message("hang in plan", nil)
			request := waitingIn(t, f.llm, "plan", "hang in plan")

			answered := make(chan int, 1)
			go func() { answered <- remove(t, addr, m.Session) }()
			<-p.passed
			process.Eventually(t, "what it has done by then", func() bool { return cut.left(storedOf(t, bus, m.Session)) })
			doomed.Kill()
			<-request.Gone()
			left := storedOf(t, bus, m.Session)
			require.Equal(t, string(event.SessionDeleted), left[len(left)-1])
			peek(t, m, "the end", wasDeleted)
			last, code := ends(client.DialOrbit(t, fmt.Sprintf("ws://%s/ws?session=%s&after=1", addr, m.Session)))
			require.Contains(t, last.Raw, `"SESSION_DELETED"`, "whether or not the rest is still stored")
			require.Equal(t, 4410, code)

			f.serve("session")
			js, err := jetstream.New(bus)
			require.NoError(t, err)
			ctx, cancel := process.Within(process.MaxWait)
			defer cancel()
			process.Eventually(t, "the next one finishes", func() bool {
				s, err := js.Stream(ctx, subject.StreamCommands)
				return err == nil && s.CachedInfo().State.Msgs == 0 && len(storedOf(t, bus, m.Session)) == 1
			})
			require.Equal(t, []string{string(event.SessionDeleted)}, storedOf(t, bus, m.Session))
			require.Contains(t, []int{http.StatusNoContent, http.StatusAccepted}, <-answered)
			require.Equal(t, http.StatusNoContent, remove(t, addr, m.Session))
			dead, err := js.Stream(ctx, subject.StreamDead)
			require.NoError(t, err)
			require.Zero(t, dead.CachedInfo().State.Msgs, "nothing was given up")
		})
	}
}
