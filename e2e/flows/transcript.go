// Package flows plays the flows of the session protocol against real processes and
// compares what was said with golden transcripts. Only tests import it.
package flows

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// The models that flows are played with.
const (
	Demo     = "demo"
	Scripted = "scripted"
)

// Flow is one use of the protocol.
type Flow struct {
	Name  string
	About string
	Demo  bool // it needs nothing that only the scripted model does

	Concurrent bool // tasks are solved side by side
	Live       bool // a run continues while what was missed is shown: where that ends differs
	Exact      bool // seqs are the same every time
	Hasty      bool // questions are open for a second only

	Play func(s *Scene)
}

// Place is where a flow is played: the address of a gateway and that of another
// installation with the same key for states. Key is that of a user of both; empty
// without authentication.
type Place struct{ Addr, Other, Key string }

// Stage is what the scenes of all flows have in common.
type Stage struct {
	actor  *actor
	Places map[string]Place // by model
	Hasty  map[string]Place // the same with a short timeout for people
}

// NewStage returns a stage without places, and the model that plays on it.
func NewStage() (*Stage, scripted.Script) {
	a := newActor()
	return &Stage{actor: a, Places: map[string]Place{}, Hasty: map[string]Place{}}, a.script()
}

// Perform plays a flow with a model and returns its transcript.
func (st *Stage) Perform(t testing.TB, f Flow, model string) string {
	t.Helper()
	s := &Scene{t: t, stage: st, place: st.Places[model], Model: model}
	if f.Hasty {
		s.place = st.Hasty[model]
	}
	f.Play(s)
	s.checkOrder()
	text, err := s.transcript(f)
	require.NoError(t, err)
	return text
}

// block is what went one way on one socket without a pause.
type block struct {
	socket string
	sent   bool
	frames []frame
	raws   []string // sent texts other than JSON objects; else ""
}

const preface = `%s

The model is the %s one. Every frame that is received has a timestamp, and those with
a seq an event_id; they are left out here. Names and numbers that differ from run to
run are in angle brackets, and consecutive pieces of a text are joined.

`

// transcript writes what was said as a txtar archive.
func (s *Scene) transcript(f Flow) (string, error) {
	blocks, err := s.blocks()
	if err != nil {
		return "", err
	}
	n := normal{exact: f.Exact, names: map[string]string{}, count: map[string]int{}}
	for _, b := range blocks {
		if !b.sent {
			b.frames = sorted(b.frames, f)
			for _, v := range b.frames {
				n.learn(v)
			}
		}
	}
	r := n.replacer()
	var out strings.Builder
	fmt.Fprintf(&out, preface, f.About, s.Model)
	for i, b := range blocks {
		way := "receives"
		if b.sent {
			way = "sends"
		}
		fmt.Fprintf(&out, "-- %02d %s %s --\n", i+1, b.socket, way)
		for j, v := range b.frames {
			switch {
			case b.sent && b.raws[j] != "":
				out.WriteString(b.raws[j] + "\n")
				continue
			case b.sent:
				shorten(v, n.exact)
			default:
				n.mask(v)
			}
			n.rename(v, r)
			out.WriteString(encode(v) + "\n")
		}
	}
	return out.String(), nil
}

// blocks puts together what went one way without a pause.
func (s *Scene) blocks() ([]*block, error) {
	var blocks []*block
	for _, l := range s.lines {
		if n := len(blocks); n == 0 || blocks[n-1].socket != l.socket || blocks[n-1].sent != l.sent {
			blocks = append(blocks, &block{socket: l.socket, sent: l.sent})
		}
		b := blocks[len(blocks)-1]
		v, err := decode(l.raw)
		raw := ""
		if err != nil {
			if !l.sent {
				return nil, err
			}
			raw = string(l.raw)
		}
		b.frames, b.raws = append(b.frames, v), append(b.raws, raw)
	}
	return blocks, nil
}

// long is more than any text in a transcript needs.
const long = 400

// shorten cuts what a client sent where it is long, and hides where in the log it says
// that it is if that differs from run to run.
func shorten(v frame, exact bool) {
	for k, x := range v {
		switch x := x.(type) {
		case frame:
			if k == "signed_state" {
				v[k] = "<a signed state>"
				continue
			}
			shorten(x, exact)
		case string:
			if len(x) > long {
				v[k] = fmt.Sprintf("%s... (%d characters)", x[:20], len(x))
			}
			if k == "last_event_id" || k == "client_state_hash" {
				v[k] = masks[k]
			}
		case []any:
			if len(x) > 10 {
				v[k] = fmt.Sprintf("(a list of %d)", len(x))
			}
		default:
			if k == "last_seq" && !exact {
				v[k] = "<seq>"
			}
		}
	}
}

// checkOrder requires what every flow has in common: a task begins after what it
// depends on, and nothing of a run comes after its end.
func (s *Scene) checkOrder() {
	s.t.Helper()
	seen, done, ended := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, l := range s.lines {
		f := l.frame
		if l.sent || f.Seq == 0 || seen[f.SessionID+f.EventID] {
			continue // or another socket has shown it already
		}
		seen[f.SessionID+f.EventID] = true
		run := f.Meta().RunID
		require.False(s.t, run != "" && ended[run], "after the end of its run: %s", f.Raw)
		switch f.Event {
		case myagent.UserMessage, myagent.UserSolveTasks:
			clear(done)
		case myagent.SolverCompleted:
			done[taskOf(f)] = true
		case myagent.SolverRestarted:
			delete(done, taskOf(f))
		case myagent.SolverStart:
			for _, dep := range sdk.As[myagent.SolverStartContent](f.Content).Task.Dependencies {
				require.True(s.t, done[dep], "%s begins before %s is done: %s", taskOf(f), dep, s.names())
			}
		case myagent.AgentFinalAnswer, myagent.AgentInterrupted:
			ended[run] = true
		}
	}
}
