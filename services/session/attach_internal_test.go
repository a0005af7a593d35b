package session

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

func TestWhereAClientBegins(t *testing.T) {
	at := func(n uint64) *uint64 { return &n }
	cur := func(seq, stream uint64) *eventlog.Cursor { return &eventlog.Cursor{Seq: seq, Stream: stream} }
	whole := ends{first: 1, last: eventlog.Cursor{Seq: 10, Stream: 100}}
	cut := ends{first: 4, last: eventlog.Cursor{Seq: 10, Stream: 100}}
	for _, c := range []struct {
		name  string
		wish  wish
		log   ends
		after string
		first uint64
		field string // of CURSOR_INVALID
	}{
		{"nothing said: the beginning", wish{}, whole, "0", 0, ""},
		{"the last ack", wish{acked: 7}, whole, "7", 0, ""},
		{"an ack from before the log was lost", wish{acked: 70}, whole, "10.100", 0, ""},
		{"after a seq", wish{after: at(3)}, whole, "3", 0, ""},
		{"after 0", wish{after: at(0), acked: 7}, whole, "0", 0, ""},
		{"after the newest", wish{after: at(10)}, whole, "10.100", 0, ""},
		{"beyond the newest", wish{after: at(11)}, whole, "", 0, "last_seq"},
		{"an event id", wish{event: cur(3, 33)}, whole, "3.33", 0, ""},
		{"an event id wins", wish{event: cur(3, 33), after: at(9), live: true, acked: 5}, whole, "3.33", 0, ""},
		{"a seq wins over live", wish{after: at(9), live: true, acked: 5}, whole, "9", 0, ""},
		{"an event id beyond the newest", wish{event: cur(11, 110), after: at(3)}, whole, "", 0, "last_event_id"},
		{"live", wish{live: true, acked: 5}, whole, "10.100", 0, ""},
		{"the head has expired", wish{}, cut, "3", 4, ""},
		{"what follows has expired", wish{after: at(2)}, cut, "3", 4, ""},
		{"only what was seen has expired", wish{after: at(3)}, cut, "3", 0, ""},
		{"an ack before what is left", wish{acked: 1}, cut, "3", 4, ""},
		{"live, and the head has expired", wish{live: true}, cut, "10.100", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			after, first, err := c.wish.begin(c.log)
			if c.field != "" {
				var f *fault.Fault
				require.ErrorAs(t, err, &f)
				require.Equal(t, fault.CursorInvalid, f.Code)
				require.Equal(t, c.field, f.Field)
				require.Equal(t, "at most 10", f.Constraint)
				require.JSONEq(t, "11", string(f.Provided))
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.after, after.String())
			require.Equal(t, c.first, first)
		})
	}
}

// TestMissedEventsAreReported: for every request the answer lies within the log, leaves out no
// stored event that was asked for, and reports expired ones.
func TestMissedEventsAreReported(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		last := rapid.Uint64Range(1, 40).Draw(t, "last")
		log := ends{first: rapid.Uint64Range(1, last).Draw(t, "first"), last: eventlog.Cursor{Seq: last, Stream: last + 1000}}
		seq := rapid.Uint64Range(0, 50)
		w := wish{live: rapid.Bool().Draw(t, "live"), acked: seq.Draw(t, "acked")}
		asked := w.acked
		if asked > last || w.live {
			asked = last
		}
		if rapid.Bool().Draw(t, "has after") {
			asked = seq.Draw(t, "after")
			w.after = &asked
		}
		if rapid.Bool().Draw(t, "has event") {
			c := eventlog.Cursor{Seq: seq.Draw(t, "event"), Stream: seq.Draw(t, "stream")}
			w.event, asked = &c, c.Seq
		}
		after, first, err := w.begin(log)
		if asked > last {
			require.ErrorIs(t, err, fault.New(fault.CursorInvalid))
			return
		}
		require.NoError(t, err)
		require.LessOrEqual(t, after.Seq, last)
		require.GreaterOrEqual(t, after.Seq, asked, "nothing is shown again")
		require.GreaterOrEqual(t, after.Seq+1, log.first, "it is there")
		if first == 0 {
			require.Equal(t, asked, after.Seq)
			return
		}
		require.Equal(t, log.first, first)
		require.Equal(t, first-1, after.Seq)
		require.Less(t, asked+1, first)
	})
}

func TestTheLanguageIsTheOneOfTheFirstEvent(t *testing.T) {
	for want, data := range map[string]event.Data{
		"en_US": event.SessionCreatedData{Preferences: event.Preferences{Language: "en_US"}},
		"zh_CN": event.SessionRestoredData{State: []byte(`{"preferences":{"language":"zh_CN"}}`)},
		"":      event.NoticeData{},
	} {
		e, err := event.New(sessionLog(testTenant, testEntity), "x", source, testTime, data)
		require.NoError(t, err)
		got, err := languageOf(e)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := languageOf(event.Event{Type: event.SessionRestored, Data: []byte(`{"state":7}`)})
	require.Error(t, err)
}

func TestHashesAreComparedAsClientsWriteThem(t *testing.T) {
	require.True(t, sameHash("sha256:AB12", "ab12"))
	require.True(t, sameHash("ab12", "ab12"))
	require.False(t, sameHash("", "ab12"))
	require.False(t, sameHash("sha256:ab13", "ab12"))
}
