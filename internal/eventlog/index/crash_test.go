package index_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/eventlog/index"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// crashesEach is the number of crashes of one history.
const crashesEach = 10

// TestTheIndexOutlivesCrashes of the bus at any point: after each crash it equals a rebuilt index.
func TestTheIndexOutlivesCrashes(t *testing.T) {
	t.Parallel()
	for seed := range crashSeeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, seed)
			for n := range crashesEach {
				for range 5 + w.rnd.IntN(15) {
					w.step()
				}
				w.crash()
				for range w.rnd.IntN(3) { // before the recovery
					w.event()
				}
				w.recover()
				got := w.entries()
				w.clear()
				w.recover()
				require.Equal(t, w.entries(), got, "crash %d of the seed %d", n, seed)
			}
		})
	}
}

// write is a change of the index: of a removal without data.
type write struct {
	name string
	data []byte
}

// world is a bus that crashes, and the logs that change on it.
type world struct {
	*rig
	rnd    *rand.Rand
	news   chan *nats.Msg
	writes []write
	safe   int               // number of writes before the last crash, which no other one loses
	live   map[string][]byte // the entries of the index

	logs map[subject.Log]*life
	made int
}

// life is what happens in a log.
type life struct {
	asked int
	open  []string
	run   int
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		rig: newRig(t), rnd: rand.New(rand.NewPCG(seed, 7)), news: make(chan *nats.Msg, 100_000),
		live: map[string][]byte{}, logs: map[subject.Log]*life{},
	}
	sub, err := w.conn.NATS().ChanSubscribe(subject.IndexAll, w.news)
	require.NoError(t, err)
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	require.NoError(t, w.conn.Flush(w.ctx))
	return w
}

// listen takes the writes since the last call, and the entries that have gone.
func (w *world) listen() {
	w.t.Helper()
	require.NoError(w.t, w.conn.Flush(w.ctx))
	for range len(w.news) {
		m := <-w.news
		w.writes = append(w.writes, write{m.Subject, m.Data})
		w.live[m.Subject] = m.Data
	}
	now := w.stored()
	for _, name := range slices.Sorted(maps.Keys(w.live)) {
		if _, there := now[name]; !there {
			w.removed([]string{name})
		}
	}
}

func (w *world) removed(names []string) {
	for _, name := range names {
		w.writes = append(w.writes, write{name: name})
		delete(w.live, name)
	}
}

// stored returns what the index has, with markers and positions.
func (w *world) stored() map[string][]byte {
	w.t.Helper()
	out := map[string][]byte{}
	require.NoError(w.t, w.conn.Each(w.ctx, subject.StreamIndex, true, func(m *bus.Message) error {
		out[m.Subject] = m.Data
		return nil
	}, subject.IndexAll))
	return out
}

func isGone(raw []byte) bool {
	var m struct {
		Gone bool `json:"gone"`
	}
	return json.Unmarshal(raw, &m) == nil && m.Gone
}

// entries returns the summaries and questions.
func (w *world) entries() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for name, raw := range w.stored() {
		if name != subject.IndexPosition(id.KindSession) && name != subject.IndexPosition(id.KindTask) && !isGone(raw) {
			out[name] = string(raw)
		}
	}
	return out
}

// purge removes entries, and returns their subjects.
func (w *world) purge(filter string) (out []string) {
	w.t.Helper()
	require.NoError(w.t, w.stream().Purge(w.ctx, jetstream.WithPurgeSubject(filter)))
	for name := range w.live {
		if filter == subject.IndexAll || filter == name {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// clear empties the index, of which nothing comes back.
func (w *world) clear() {
	w.t.Helper()
	w.purge(subject.IndexAll)
	clear(w.live)
	w.writes, w.safe = nil, 0
}

// step is one of the things that happen.
func (w *world) step() {
	switch n := w.rnd.IntN(10); {
	case n < 6:
		w.event()
	case n < 8:
		for _, l := range w.known() {
			if w.rnd.IntN(2) == 0 {
				require.NoError(w.t, w.Update(w.ctx, l))
			}
		}
	case n < 9:
		w.recover()
	default: // the markers expire
		for _, name := range slices.Sorted(maps.Keys(w.live)) {
			if isGone(w.live[name]) {
				w.removed(w.purge(name))
			}
		}
	}
	w.listen()
}

func (w *world) known() []subject.Log {
	return slices.SortedFunc(maps.Keys(w.logs), func(a, b subject.Log) int {
		return len(a.Entity.String()) - len(b.Entity.String()) + slices.Compare([]byte(a.Name()), []byte(b.Name()))
	})
}

// event appends to a log.
func (w *world) event() {
	all := w.known()
	if len(all) < 4 {
		w.made++
		l := subject.Log{Tenant: red, Kind: id.KindSession, Entity: id.EntityFromExternal(fmt.Sprint("s", w.made))}
		first := opened("ann")
		if w.made%3 == 0 {
			l.Kind, first = id.KindTask, event.TaskCreatedData{TaskHead: event.TaskHead{TaskID: l.Entity.String()}, TaskType: "weld", Principal: "bob"}
		}
		w.logs[l] = &life{}
		w.append(l, first)
		return
	}
	l := all[w.rnd.IntN(len(all))]
	if l.Kind == id.KindTask {
		w.taskEvent(l, w.logs[l])
	} else {
		w.sessionEvent(l, w.logs[l])
	}
}

// pick takes one of the open questions.
func (l *life) pick(rnd *rand.Rand) string {
	n := rnd.IntN(len(l.open))
	input := l.open[n]
	l.open = slices.Delete(l.open, n, n+1)
	return input
}

func (w *world) sessionEvent(l subject.Log, s *life) {
	run := fmt.Sprint("r", s.run)
	switch n := w.rnd.IntN(20); {
	case n < 8 || len(s.open) == 0 && n < 15:
		s.asked++
		input := fmt.Sprint("i", s.asked)
		s.open = append(s.open, input)
		w.append(l, asksTool(input, run, `{"n":1}`))
	case n < 12:
		w.append(l, event.InputAnsweredData{InputID: s.pick(w.rnd), RunID: run, Decision: event.DecisionApprove, By: "ann"})
	case n < 15:
		w.append(l, event.InputExpiredData{InputID: s.pick(w.rnd), RunID: run})
	case n < 18:
		w.append(l, event.RunCompletedData{RunID: run}, asked(fmt.Sprint("r", s.run+1), "more"))
		s.run, s.open = s.run+1, nil
	case n < 19:
		w.append(l, event.SessionClosedData{})
		s.open = nil
	default:
		w.append(l, event.SessionDeletedData{})
		delete(w.logs, l)
	}
}

func (w *world) taskEvent(l subject.Log, s *life) {
	head := event.TaskHead{TaskID: l.Entity.String(), AgentID: "a1", AgentName: "Welder", Attempt: 1}
	switch n := w.rnd.IntN(10); {
	case n < 4 || len(s.open) == 0 && n < 8:
		s.asked++
		s.open = []string{fmt.Sprint("q", s.asked)} // an agent has one open question
		w.append(l, event.TaskAskedData{TaskHead: head, InputID: s.open[0], Message: json.RawMessage(`"which?"`), TimeoutMS: 1500})
	case n < 6:
		w.append(l, event.TaskMessagedData{TaskHead: head, MessageID: fmt.Sprint("m", s.asked), Message: json.RawMessage(`1`), From: "c1", InputID: s.pick(w.rnd)})
	case n < 8:
		w.append(l, event.TaskAskExpiredData{TaskHead: head, InputID: s.pick(w.rnd)})
	case n < 9:
		w.append(l, event.TaskReleasedData{TaskHead: head, Reason: "agent_lost"})
		s.open = nil
	default:
		w.append(l, event.TaskDeletedData{Reason: "session_deleted"})
		delete(w.logs, l)
	}
}

// recover is the start of processes that keep the index.
func (w *world) recover() {
	w.t.Helper()
	x := index.New(w.conn, w.log)
	for _, cfg := range []index.Config{{Kind: id.KindSession}, {Kind: id.KindTask, Fades: true}} {
		cfg.Index, cfg.Conn, cfg.Logger = x, w.conn, zerolog.Nop()
		f := index.NewFollower(cfg)
		work := []func(context.Context) error{f.CatchUp, f.Recheck}
		w.rnd.Shuffle(2, func(i, j int) { work[i], work[j] = work[j], work[i] })
		for _, one := range work {
			require.NoError(w.t, one(w.ctx))
		}
	}
	w.listen()
}

// crash kills the bus and starts it again: it may lose its last writes, and has again older ones of the entries that were removed, as a
// server of NATS does (TestACrashBringsBackWhatWasRemoved).
func (w *world) crash() {
	w.t.Helper()
	w.listen()
	kept := w.writes
	if w.rnd.IntN(2) == 0 {
		kept = kept[:len(kept)-w.rnd.IntN(min(len(kept)-w.safe, 12)+1)]
	}
	versions, whole := map[string][]write{}, map[string]bool{}
	for _, one := range kept {
		if one.data == nil {
			if list := versions[one.name]; whole[one.name] {
				versions[one.name] = list[:len(list)-1] // the server notes its removal
			}
			whole[one.name] = false
			continue
		}
		versions[one.name], whole[one.name] = append(versions[one.name], one), true
	}
	lost := w.writes[len(kept):]
	w.clear()
	w.writes = slices.Clone(kept)
	var back, there []write
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		list := versions[name]
		replaced := slices.ContainsFunc(lost, func(one write) bool { return one.name == name })
		switch {
		case len(list) == 0:
		case whole[name] && !replaced:
			there = append(there, list[len(list)-1])
		case w.rnd.IntN(4) > 0:
			back = append(back, list[w.rnd.IntN(len(list))])
		}
	}
	for _, one := range append(back, there...) {
		_, err := w.conn.JS().Publish(w.ctx, one.name, one.data)
		require.NoError(w.t, err)
	}
	w.listen()
	w.safe = len(w.writes)
}

// TestACrashBringsBackWhatWasRemoved on a server that is killed, and the keeper of the index removes it again.
func TestACrashBringsBackWhatWasRemoved(t *testing.T) {
	t.Parallel()
	in := bustest.Start(t, bus.DefaultTopology())
	r := rigOn(t, bustest.Dial(t, in.URL))
	r.MarkersLive(time.Second)
	first, l, gone := sessionOf(red, "first"), sessionOf(red, "s1"), sessionOf(red, "gone")
	update := func(l subject.Log, data ...event.Data) {
		t.Helper()
		r.append(l, data...)
		require.NoError(t, r.Update(r.ctx, l))
	}
	update(first, opened("ann"), asksTool("waits", "r1", `{}`))
	update(l, opened("ann"), asksTool("i1", "r1", `{}`))
	update(gone, opened("ann"))
	update(gone, asked("r1", "secret"))
	update(l, event.InputAnsweredData{InputID: "i1", RunID: "r1", Decision: event.DecisionApprove}, event.RunCompletedData{RunID: "r1"})
	update(gone, event.SessionDeletedData{})
	marker, s := l.Question(subject.QuestionsOpen, id.EntityFromExternal("i1")), r.stream()
	require.Eventually(t, func() bool {
		_, err := s.GetLastMsgForSubject(r.ctx, marker)
		return errors.Is(err, jetstream.ErrMsgNotFound)
	}, bustest.MaxWait, 50*time.Millisecond, "the marker expires")

	in.Crash()
	in.Start()
	r = rigOn(t, bustest.Dial(t, in.URL))
	require.ElementsMatch(t, []string{"waits open", "i1 open"}, r.inputs(red, subject.QuestionsOpen, 10), "what the server of NATS does")
	require.Contains(t, names(r.all(red, 10)), "gone")
	r.follow(index.Config{CatchUp: time.Hour})
	require.Eventually(t, func() bool {
		return slices.Equal([]string{"waits open"}, r.inputs(red, subject.QuestionsOpen, 10)) && !slices.Contains(names(r.all(red, 10)), "gone")
	}, bustest.MaxWait, 5*time.Millisecond)
	require.Equal(t, []string{"i1 answered"}, r.inputs(red, subject.QuestionsOver, 10))
}

func (r *rig) stream() jetstream.Stream {
	r.t.Helper()
	s, err := r.conn.JS().Stream(r.ctx, subject.StreamIndex)
	require.NoError(r.t, err)
	return s
}
