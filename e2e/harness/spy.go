package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	client "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

// Manner is a dialect in which any run can be watched.
type Manner struct {
	Name string
	Path string // of its socket, up to the run
	Page string // of its documentation

	kind  string // the member of a frame that names its type
	seq   func(frame map[string]any) uint64
	check func(testing.TB, counts, []byte)
}

// Manners are all of them. Frames of those that have schemas are checked.
func Manners() []Manner {
	return []Manner{
		{Name: "ORBIT", Path: "/ws?watch=", Page: "PROTOCOL-ORBIT.md", kind: "type", seq: at("seq"), check: func(testing.TB, counts, []byte) {}},
		{Name: "MyAgent", Path: "/ws/session?deltas=all&watch=", Page: "PROTOCOL-MYAGENT.md", kind: "event", seq: at("seq"), check: func(t testing.TB, _ counts, raw []byte) {
			f := client.Frame{Raw: raw}
			if assert.NoError(t, json.Unmarshal(raw, &f)) {
				check(t, f)
			}
		}},
		{Name: "ASP", Path: "/ws/asp/client?watch=", Page: "PROTOCOL-ASP.md", kind: "type", seq: at("watched", "seq"), check: func(t testing.TB, _ counts, raw []byte) {
			var f SwarmFrame
			if assert.NoError(t, json.Unmarshal(raw, &f)) {
				swarmGot(t, RoleClient, f.Type, raw)
			}
		}},
		{Name: "team", Path: "/ws/agent-team?additions=true&watch=", Page: "PROTOCOL-TEAM.md", kind: "type", seq: position(at("payload", "team_stream_event_envelope", "sequence")), check: checkTeam},
		{Name: "team envelopes", Path: "/ws/agent-team?format=envelope&watch=", seq: position(at("sequence")), check: checkTeam},
	}
}

func checkTeam(t testing.TB, n counts, raw []byte) { n.teamGot(t, raw) }

// at reads a number of a frame.
func at(path ...string) func(map[string]any) uint64 {
	return func(m map[string]any) uint64 {
		for _, name := range path[:len(path)-1] {
			m, _ = m[name].(map[string]any)
		}
		n, _ := m[path[len(path)-1]].(float64) // what has no position has 0
		return uint64(n)
	}
}

// position makes of the position of a frame of teams that of its event.
func position(read func(map[string]any) uint64) func(map[string]any) uint64 {
	const frames = 16
	return func(m map[string]any) uint64 { return read(m) / frames }
}

// Sight is a frame that a Spy got.
type Sight struct {
	Raw  string
	Kind string
	Seq  uint64 // of its event in the watched log; 0: it is about none
}

// Spy watches a run in a dialect. It is safe for concurrent use.
type Spy struct {
	Manner
	t     testing.TB
	conn  *websocket.Conn
	ended chan struct{}

	mu   sync.Mutex
	all  []Sight
	open int // frames of an event whose position has not come yet
	news chan struct{}
}

// Spy watches a run, named <kind>/<id>, to the end of the test.
func (m Manner) Spy(t testing.TB, addr, run string) *Spy {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws://"+addr+m.Path+run, nil) //nolint:bodyclose // closed by the library
	require.NoError(t, err)
	conn.SetReadLimit(4 << 20)
	s := &Spy{Manner: m, t: t, conn: conn, ended: make(chan struct{}), news: make(chan struct{})}
	go s.read()
	t.Cleanup(func() {
		_ = conn.CloseNow()
		<-s.ended
	})
	return s
}

func (s *Spy) read() {
	defer close(s.ended)
	n := counts{}
	for {
		_, raw, err := s.conn.Read(context.Background())
		if err != nil {
			return // the test waits for what does not come
		}
		s.check(s.t, n, raw)
		m := object(string(raw))
		one := Sight{Raw: string(raw), Seq: s.seq(m)}
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
func (s *Spy) place(m map[string]any) {
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
func (s *Spy) Say(frame map[string]any) {
	s.t.Helper()
	raw, err := json.Marshal(frame)
	require.NoError(s.t, err)
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	require.NoError(s.t, s.conn.Write(ctx, websocket.MessageText, raw))
}

// Until waits for a frame about an event of the run that ok accepts.
func (s *Spy) Until(what string, ok func(Sight) bool) Sight {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	for {
		s.mu.Lock()
		news := s.news
		i := slices.IndexFunc(s.all, ok)
		var found Sight
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
			require.FailNow(s.t, s.Name+" never showed: "+what, "%v", s.Sights())
		}
	}
}

// Sights returns the frames about events of the run so far.
func (s *Spy) Sights() (out []Sight) {
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
func (s *Spy) Said() (out []Sight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if one.Seq == 0 {
			out = append(out, one)
		}
	}
	return out
}

// Row is what a type of event becomes.
type Row struct {
	Frames []string
	None   bool // it may give no frame
}

var quoted = regexp.MustCompile("`([^`]+)`")

// Table reads from the documentation what the dialect makes of each type of event.
func (m Manner) Table(t testing.TB) map[event.Type]Row {
	t.Helper()
	raw, err := os.ReadFile("../docs/" + m.Page)
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(raw), "\n## Watching any run\n")
	text, _, _ = strings.Cut(text, "\n## ")
	_, text, found := strings.Cut(text, "\n| Canonical type |")
	require.True(t, found, m.Page)
	out := map[event.Type]Row{}
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		r := Row{None: strings.Contains(cells[2], "nothing")}
		for _, f := range quoted.FindAllStringSubmatch(cells[2], -1) {
			r.Frames = append(r.Frames, f[1])
		}
		if len(r.Frames) == 1 && r.Frames[0] == "AGENT_STATUS" {
			r.None = true // in a team only if it has changed
		}
		for _, kind := range quoted.FindAllStringSubmatch(cells[1], -1) {
			out[event.Type(kind[1])] = r
		}
	}
	return out
}

// Complete requires that the frames so far are, event by event, what the documentation
// says of the log, and returns of how many events they are. The last event has to be
// shown. Pieces of text may have come together.
func (s *Spy) Complete(log []Stored) int {
	s.t.Helper()
	by := map[uint64][]string{}
	for _, one := range s.Sights() {
		by[one.Seq] = append(by[one.Seq], one.Kind)
	}
	shown := slices.Sorted(maps.Keys(by))
	require.NotEmpty(s.t, shown)
	require.LessOrEqual(s.t, shown[len(shown)-1], uint64(len(log)))
	table := s.Table(s.t)
	for _, e := range log {
		inner := event.Unwrap(e.Event)
		row, known := table[inner.Type]
		require.True(s.t, known, "%s says nothing of %s", s.Page, inner.Type)
		if inner.Type != event.MessageDelta {
			require.True(s.t, row.None || len(by[e.Sequence]) > 0, "%s does not show %d %s of %q: %s", s.Name, e.Sequence, inner.Type, inner.Via.Route, e.Data)
		}
		for _, kind := range by[e.Sequence] {
			require.Contains(s.t, row.Frames, kind, "%s: %s", s.Name, inner.Type)
		}
	}
	return len(by)
}

// Texts returns the frames about events of the run as they came, of those that a text
// was cut into by the clock none.
func (s *Spy) Texts() (out []string) {
	for _, one := range s.Sights() {
		if !slices.Contains([]string{"agent.partial_answer", "SEGMENT_CONTENT"}, one.Kind) && !strings.Contains(one.Raw, `"type":"SEGMENT_CONTENT"`) {
			out = append(out, one.Raw)
		}
	}
	return out
}

// String names the spy.
func (s *Spy) String() string { return fmt.Sprintf("%s at %s", s.Name, s.Path) }
