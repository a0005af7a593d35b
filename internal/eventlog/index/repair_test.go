package index_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/eventlog/index"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func answer(input string) event.Data {
	return event.InputAnsweredData{InputID: input, RunID: "r1", Decision: event.DecisionApprove, By: "ann"}
}

// TestALogWithoutItsBeginningIsMended: questions of which the log has lost the events keep the entries that they have.
func TestALogWithoutItsBeginningIsMended(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]int{ // events at the beginning
		"nothing is lost":                   0,
		"the owner":                         1,
		"a question, and its answer is not": 3,
		"a question and its answer":         4,
		"questions that wait":               6,
		"all but the last event":            9,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, l := newWorld(t, 0), sessionOf(red, "s1")
			ghosts := map[string][]byte{}
			for _, data := range []event.Data{
				opened("ann"), asked("r1", "pay"), asksTool("i1", "r1", `{}`), answer("i1"), asksTool("i2", "r1", `{}`), asksTool("i3", "r1", `{}`),
				answer("i3"), asksTool("i4", "r1", `{}`), answer("i4"), asksTool("i5", "r1", `{}`),
			} {
				w.append(l, data)
				require.NoError(t, w.Update(w.ctx, l))
				for name, raw := range w.stored() {
					if !isGone(raw) {
						ghosts[name] = raw
					}
				}
			}
			want := w.entries()
			w.loseEvents(l, lost)
			for name, raw := range ghosts {
				if _, known := want[name]; !known {
					_, err := w.conn.JS().Publish(w.ctx, name, raw)
					require.NoError(t, err)
				}
			}
			require.Len(t, w.inputs(red, subject.QuestionsOpen, 10), 5, "all are back")

			require.NoError(t, w.once().Recheck(w.ctx))
			require.Equal(t, want, w.entries())
			w.append(l, answer("i2"))
			require.NoError(t, w.Update(w.ctx, l))
			require.Equal(t, []string{"i5 open"}, w.inputs(red, subject.QuestionsOpen, 10))
			require.Equal(t, 1, w.all(red, 10)[0].Inputs)
		})
	}
}

// loseEvents removes the first events of a log, as age does.
func (r *rig) loseEvents(l subject.Log, n int) {
	r.t.Helper()
	s, err := r.conn.JS().Stream(r.ctx, subject.DefaultPartitions.Stream(l))
	require.NoError(r.t, err)
	require.NoError(r.t, s.Purge(r.ctx, jetstream.WithPurgeSubject(subject.DefaultPartitions.Event(l)), jetstream.WithPurgeSequence(uint64(n)+1)))
}

// TestAnExpiredLogHasNoEntries: the questions of a log whose events have expired are not listed.
func TestAnExpiredLogHasNoEntries(t *testing.T) {
	t.Parallel()
	for _, fades := range []bool{true, false} {
		w, l := newWorld(t, 0), sessionOf(red, "s1")
		w.append(l, opened("ann"), asksTool("i1", "r1", `{}`), asksTool("i2", "r1", `{}`), answer("i2"))
		require.NoError(t, w.Update(w.ctx, l))
		require.Len(t, w.entries(), 3)
		s, err := w.conn.JS().Stream(w.ctx, subject.DefaultPartitions.Stream(l))
		require.NoError(t, err)
		require.NoError(t, s.Purge(w.ctx))
		f := index.NewFollower(index.Config{Index: w.Index, Conn: w.conn, Kind: id.KindSession, Fades: fades})
		require.NoError(t, f.Recheck(w.ctx))
		require.Empty(t, w.entries(), strings.Join(w.inputs(red, subject.QuestionsOpen, 10), " "))
	}
}
