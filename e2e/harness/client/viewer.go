package client

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/proof"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

// Dialect is a dialect in which any run can be watched.
type Dialect struct {
	Name string
	Path string // of its socket, up to the run

	kind  string // the member of a frame that names its type
	seq   func(frame map[string]any) uint64
	check func(testing.TB, proof.TeamCounts, []byte)
}

// Dialects are all of them. Frames of those that have schemas are checked.
func Dialects() []Dialect {
	return []Dialect{
		{Name: "ORBIT", Path: "/ws?watch=", kind: "type", seq: at("seq"), check: func(testing.TB, proof.TeamCounts, []byte) {}},
		{Name: "MyAgent", Path: "/ws/session?deltas=all&watch=", kind: "event", seq: at("seq"), check: func(t testing.TB, _ proof.TeamCounts, raw []byte) {
			f := sdk.Frame{Raw: raw}
			if assert.NoError(t, json.Unmarshal(raw, &f)) {
				proof.MyAgentReceived(t, f)
			}
		}},
		{Name: "ASP", Path: "/ws/asp/client?watch=", kind: "type", seq: at("watched", "seq"), check: func(t testing.TB, _ proof.TeamCounts, raw []byte) {
			var f SwarmFrame
			if assert.NoError(t, json.Unmarshal(raw, &f)) {
				proof.SwarmReceived(t, proof.RoleClient, f.Type, raw)
			}
		}},
		{Name: "team", Path: "/ws/agent-team?additions=true&watch=", kind: "type", seq: position(at("payload", "team_stream_event_envelope", "sequence")), check: checkTeam},
		{Name: "team envelopes", Path: "/ws/agent-team?format=envelope&watch=", seq: position(at("sequence")), check: checkTeam},
	}
}

// MyAgentDialect returns the dialect of the session protocol.
func MyAgentDialect() Dialect { return Dialects()[1] }

func checkTeam(t testing.TB, n proof.TeamCounts, raw []byte) { n.Received(t, raw) }

// at reads a number of a frame.
func at(path ...string) func(map[string]any) uint64 {
	return func(m map[string]any) uint64 {
		for _, name := range path[:len(path)-1] {
			m, _ = m[name].(map[string]any)
		}
		n, _ := m[path[len(path)-1]].(float64) // 0: no position
		return uint64(n)
	}
}

// position makes of the position of a frame of teams that of its event.
func position(read func(map[string]any) uint64) func(map[string]any) uint64 {
	const frames = 16
	return func(m map[string]any) uint64 { return read(m) / frames }
}

// Shown is a frame that a Spy got.
type Shown struct {
	Raw  string
	Kind string
	Seq  uint64 // of its event in the watched log; 0: it is about none
}

// MyAgent decodes a frame of the session protocol.
func (s Shown) MyAgent() sdk.Frame {
	f, err := sdk.Parse([]byte(s.Raw))
	if err != nil {
		return sdk.Frame{} // the viewer has reported the frame
	}
	return f
}

// Viewer watches a run in a dialect. It is safe for concurrent use.
type Viewer struct {
	Dialect
	t     testing.TB
	conn  *websocket.Conn
	ended chan struct{}

	mu   sync.Mutex
	all  []Shown
	open int // frames of an event whose position has not come yet
	news chan struct{}
}

// Watch watches a run, named <kind>/<id>, to the end of the test.
func (m Dialect) Watch(t testing.TB, addr, run, key string) *Viewer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.MaxWait)
	defer cancel()
	conn, err := dial(ctx, "ws://"+addr+m.Path+run, key)
	require.NoError(t, err)
	s := &Viewer{Dialect: m, t: t, conn: conn, ended: make(chan struct{}), news: make(chan struct{})}
	go s.read()
	t.Cleanup(func() {
		_ = conn.CloseNow()
		<-s.ended
	})
	return s
}

func (s *Viewer) read() {
	defer close(s.ended)
	n := proof.TeamCounts{}
	for {
		_, raw, err := s.conn.Read(context.Background())
		if err != nil {
			return // the test waits for what does not come
		}
		s.check(s.t, n, raw)
		var m map[string]any
		_ = json.Unmarshal(raw, &m) // check has reported a frame that is not an object
		one := Shown{Raw: string(raw), Seq: s.seq(m)}
		one.Kind, _ = m[s.kind].(string)
		s.mu.Lock()
		s.all = append(s.all, one)
		s.place(m)
		close(s.news)
		s.news = make(chan struct{})
		s.mu.Unlock()
	}
}

// place gives the frames of an event whose position only the last one has that position.
func (s *Viewer) place(m map[string]any) {
	last := len(s.all) - 1
	if w, about := m["watched"].(map[string]any); about && w["seq"] == nil {
		s.open++
		return
	}
	if s.all[last].Seq == 0 {
		return
	}
	for i := last - 1; i >= 0 && s.open > 0; i-- {
		if strings.Contains(s.all[i].Raw, `"watched":{`) && s.all[i].Seq == 0 {
			s.all[i].Seq = s.all[last].Seq
			s.open--
		}
	}
}

// Say sends a frame.
func (s *Viewer) Say(frame map[string]any) {
	s.t.Helper()
	raw, err := json.Marshal(frame)
	require.NoError(s.t, err)
	ctx, cancel := context.WithTimeout(context.Background(), process.MaxWait)
	defer cancel()
	require.NoError(s.t, s.conn.Write(ctx, websocket.MessageText, raw))
}

// Until waits for a frame about an event of the run that ok accepts.
func (s *Viewer) Until(what string, ok func(Shown) bool) Shown {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.MaxWait)
	defer cancel()
	for {
		s.mu.Lock()
		news := s.news
		i := slices.IndexFunc(s.all, ok)
		var found Shown
		if i >= 0 {
			found = s.all[i]
		}
		s.mu.Unlock()
		if i >= 0 {
			return found
		}
		select {
		case <-news:
		case <-ctx.Done():
			require.FailNow(s.t, s.Name+" never showed: "+what, "%v", s.Shown())
		}
	}
}

// Shown returns the frames about events of the run so far.
func (s *Viewer) Shown() (out []Shown) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if one.Seq > 0 {
			out = append(out, one)
		}
	}
	return out
}

// Said returns the frames that are about no event: greetings and answers.
func (s *Viewer) Said() (out []Shown) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if one.Seq == 0 {
			out = append(out, one)
		}
	}
	return out
}

// Texts returns the frames about events of the run as they came, of those that a text
// was cut into by the clock none.
func (s *Viewer) Texts() (out []string) {
	for _, one := range s.Shown() {
		if !slices.Contains([]string{"agent.partial_answer", "SEGMENT_CONTENT"}, one.Kind) && !strings.Contains(one.Raw, `"type":"SEGMENT_CONTENT"`) {
			out = append(out, one.Raw)
		}
	}
	return out
}

// String names the spy.
func (s *Viewer) String() string { return fmt.Sprintf("%s at %s", s.Name, s.Path) }
