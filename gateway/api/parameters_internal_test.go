package api

import (
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// asked returns the query of a request.
func asked(t *testing.T, given string) *query {
	t.Helper()
	_, err := url.ParseQuery(given)
	require.NoError(t, err)
	return queryOf(httptest.NewRequestWithContext(t.Context(), "GET", "/?"+given, nil))
}

func TestParametersAreRead(t *testing.T) {
	t.Parallel()
	q := asked(t, "limit=1000&status=open&q=hello&since=2026-01-02T03:04:05%2B01:00&before=7&at=9")
	require.Equal(t, 1000, q.count(sessionLimit))
	require.Equal(t, "open", q.choice(sessionStatus))
	require.Equal(t, "hello", q.text(sessionText))
	require.True(t, q.moment(sessionSince).Equal(time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC)))
	require.EqualValues(t, 7, q.place())
	require.EqualValues(t, 9, q.seq("at", 3, 9))
	require.NoError(t, q.err)

	q = asked(t, "limit=&status=&since=")
	require.Equal(t, defaultItems, q.count(sessionLimit))
	require.Empty(t, q.choice(sessionStatus))
	require.Zero(t, q.moment(sessionSince))
	require.Zero(t, q.place())
	require.EqualValues(t, 3, q.seq("at", 3, 9))
	require.NoError(t, q.err)
}

// TestParametersAreRefused with a text that says what they have to be.
func TestParametersAreRefused(t *testing.T) {
	t.Parallel()
	for given, text := range map[string]string{
		"limit=0": "limit must be a number from 1 to 1000.", "limit=1001": "limit must be a number from 1 to 1000.", "limit=x": "limit must be a number from 1 to 1000.",
		"status=ajar":     "status must be one of open, closed.",
		"q=" + many(201):  "q must be at most 200 bytes.",
		"since=yesterday": "since must be a time in RFC 3339.", "since=2026-01-02": "since must be a time in RFC 3339.",
		"before=0": "before must be the next value of an earlier page.",
	} {
		q := asked(t, given)
		q.count(sessionLimit)
		sessionFilterOf(q)
		q.place()
		f := fault.From(q.err, "")
		require.Equal(t, fault.InvalidField, f.Code, given)
		require.Equal(t, text, f.Public(), given)
	}
	for _, given := range []string{"at=10", "at=-1", "at=", "at=x"} {
		q := asked(t, given)
		q.seq("at", 3, 9)
		require.ErrorIs(t, q.err, fault.New(fault.CursorInvalid), given)
		require.Equal(t, "at", fault.From(q.err, "").Field)
	}
}

// TestTheFirstWrongParameterIsNamed, each time.
func TestTheFirstWrongParameterIsNamed(t *testing.T) {
	t.Parallel()
	for range 20 {
		q := asked(t, "until=x&since=x&state=x&status=x")
		sessionFilterOf(q)
		require.Equal(t, "status", fault.From(q.err, "").Field)
		q = asked(t, "until=x&since=x")
		sessionFilterOf(q)
		require.Equal(t, "since", fault.From(q.err, "").Field)
		q = asked(t, "entity="+many(300)+"&principal="+many(300))
		q.text(recordPrincipal)
		q.text(recordEntity)
		require.Equal(t, "principal", fault.From(q.err, "").Field)
	}
}

func many(n int) string { return strings.Repeat("x", n) }

// TestAParameterIsWithinItsBoundsOrWrong, whatever a client sends.
func TestAParameterIsWithinItsBoundsOrWrong(t *testing.T) {
	t.Parallel()
	numeric, anything := rapid.StringMatching(`-?[0-9]{0,20}`), rapid.String()
	rapid.Check(t, func(t *rapid.T) {
		given := rapid.OneOf(numeric, anything, rapid.SampledFrom(sessionStatus.known)).Draw(t, "given")
		read := func(name string, of func(*query)) bool {
			q := &query{Values: url.Values{name: {given}}}
			of(q)
			return q.err == nil
		}
		var n int
		var s string
		var seq uint64
		require.True(t, !read("limit", func(q *query) { n = q.count(sessionLimit) }) || n >= 1 && n <= sessionLimit.Maximum)
		require.True(t, !read("status", func(q *query) { s = q.choice(sessionStatus) }) || s == "" || slices.Contains(sessionStatus.known, s))
		require.True(t, !read("q", func(q *query) { s = q.text(sessionText) }) || len(s) <= sessionText.bytes)
		require.True(t, !read("at", func(q *query) { seq = q.seq("at", 0, 9) }) || seq <= 9)
		read("since", func(q *query) { q.moment(sessionSince) })
		read("before", func(q *query) { q.place() })
	})
}
