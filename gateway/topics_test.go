package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func topics(names ...string) string { return "/api/v1/live?" + url.Values{"t": names}.Encode() }

func topicOf(l subject.Log, after int) string {
	return fmt.Sprintf("log:%s/%s@%d", l.Kind, l.Entity, after)
}

// parse returns the event that a message of a topic has.
func (m happening) parse(t *testing.T, name string) (e event.Event) {
	t.Helper()
	require.Equal(t, name, m.event, m.data)
	require.NoError(t, json.Unmarshal([]byte(m.data), &e), m.data)
	return e
}

// refused returns the topic and the code of a problem.
func (m happening) refused(t *testing.T) (topic, code string) {
	t.Helper()
	require.Equal(t, "problem", m.event, m.data)
	var d struct {
		Topic   string `json:"topic"`
		Problem struct {
			Title string `json:"title"`
		} `json:"problem"`
	}
	require.NoError(t, json.Unmarshal([]byte(m.data), &d), m.data)
	return d.Topic, d.Problem.Title
}

// TestTopicsShareAStream: two logs and the announcements come on one connection, and a client that comes back with any of the
// ids gets of both logs exactly what follows.
func TestTopicsShareAStream(t *testing.T) {
	t.Parallel()
	r := start(t)
	one := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal(unique())}
	two := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTask, Entity: id.EntityFromExternal(unique())}
	r.happens(one, event.SessionCreatedData{Dialect: "orbit"})
	r.happens(two, event.TaskCreatedData{TaskHead: event.TaskHead{TaskID: "x"}})
	for i := range 4 {
		r.happens(one, event.MessageDeltaData{MessageID: "m", RunID: "r", Text: fmt.Sprint(i)})
		r.happens(two, event.TaskReportedData{Status: fmt.Sprint(i)})
	}
	warm := r.reads(topics(topicOf(one, 1))) // the gateway has the events of one log, and has to ask for the other's end
	for range 4 {
		warm.must()
	}
	defer warm.leave()
	path := topics(topicOf(one, 1), topicOf(two, 0), "events")
	s := r.reads(path)
	seen := map[string][]uint64{}
	var ids []string
	place := map[string]string{}
	for range 9 {
		m := s.must()
		e := m.parse(t, "log")
		seen[e.Subject] = append(seen[e.Subject], e.Sequence)
		ids = append(ids, m.id)
		place[m.id] = fmt.Sprintf("session/%s@%d task/%s@%d", one.Entity, max(1, len(seen[one.Name()])+1), two.Entity, len(seen[two.Name()]))
		require.Equal(t, place[m.id], m.id)
	}
	require.Equal(t, map[string][]uint64{one.Name(): {2, 3, 4, 5}, two.Name(): {1, 2, 3, 4, 5}}, seen)
	r.happens(one, event.SessionClosedData{})
	got := map[string]int{}
	for range 2 {
		m := s.must()
		got[m.event]++
		require.Equal(t, event.SessionClosed, m.parse(t, m.event).Type)
		require.Equal(t, m.event == "log", m.id != "", "an announcement has no place in a log")
	}
	require.Equal(t, map[string]int{"log": 1, "announced": 1}, got)
	s.leave()

	for _, from := range ids {
		rest := map[string]uint64{}
		for text := range strings.FieldsSeq(from) {
			var seq uint64
			name, after, _ := strings.Cut(text, "@")
			_, err := fmt.Sscan(after, &seq)
			require.NoError(t, err)
			rest[name] = seq
		}
		s := r.reads(path, "Last-Event-ID", from)
		left := 6 - rest["session/"+one.Entity.String()] + 5 - rest["task/"+two.Entity.String()]
		for range left {
			e := s.must().parse(t, "log")
			_, name, _ := strings.Cut(e.Subject, ".")
			name = strings.Replace(name, ".", "/", 1)
			rest[name]++
			require.Equal(t, rest[name], e.Sequence, "%s from %s", name, from)
		}
		s.leave()
	}
}

// TestATopicThatIsNotShown says so, and the others are shown: logs of others and of other tenants do not exist, and one that is
// deleted ends alone.
func TestATopicThatIsNotShown(t *testing.T) {
	t.Parallel()
	tenant := unique()
	r := start(t, authenticated(key("ann", tenant, auth.RoleUser), key("ben", tenant, auth.RoleUser), key("eve", unique(), auth.RoleOperator)))
	own := subject.Log{Tenant: mustTenant(t, tenant), Kind: id.KindSession, Entity: id.EntityFromExternal(unique())}
	other := own
	other.Entity = id.EntityFromExternal(unique())
	r.happens(own, event.SessionCreatedData{Dialect: "orbit", Principal: "who-ben"})
	r.happens(other, event.SessionCreatedData{Dialect: "orbit", Principal: "who-ann"})
	for who, want := range map[string]map[string]fault.Code{
		"ben": {topicOf(other, 0): fault.SessionNotFound, topicOf(own, 2): fault.CursorInvalid},
		"eve": {topicOf(other, 0): fault.SessionNotFound, topicOf(own, 0): fault.SessionNotFound},
	} {
		names := []string{topicOf(other, 0), "log:session/never", "log:team/never", "log:member/never", "log:task/never"}
		for name := range want {
			if name != topicOf(other, 0) {
				names = append(names, name)
			}
		}
		want["log:session/never"], want["log:team/never"] = fault.SessionNotFound, fault.TeamNotFound
		want["log:member/never"], want["log:task/never"] = fault.MemberNotFound, fault.TaskNotFound
		s := r.reads(topics(names...), bearer(who)...)
		got := map[string]fault.Code{}
		for range names {
			topic, code := s.must().refused(t)
			got[topic] = fault.Code(code)
		}
		require.Equal(t, want, got, who)
		s.leave()
	}

	third := own
	third.Entity = id.EntityFromExternal(unique())
	r.happens(third, event.SessionCreatedData{Dialect: "orbit", Principal: "who-ben"})
	s := r.reads(topics(topicOf(other, 0), topicOf(own, 0), topicOf(third, 1)), bearer("ben")...)
	topic, _ := s.must().refused(t)
	require.Equal(t, topicOf(other, 0), topic)
	require.Equal(t, event.SessionCreated, s.must().parse(t, "log").Type)
	r.happens(own, event.SessionDeletedData{})
	require.Equal(t, event.SessionDeleted, s.must().parse(t, "log").Type)
	topic, code := s.must().refused(t)
	require.Equal(t, topicOf(own, 0), topic)
	require.Equal(t, string(fault.SessionDeleted), code)
	r.happens(third, event.SessionClosedData{})
	require.Equal(t, event.SessionClosed, s.must().parse(t, "log").Type)
}

// TestTopicsHaveSignsOfLife however rarely idle sockets are pinged: a browser has nothing else to tell a dead connection by.
func TestTopicsHaveSignsOfLife(t *testing.T) {
	t.Parallel()
	r := start(t) // which pings very rarely
	s := r.reads(topics("events"))
	for {
		line, err := s.in.ReadString('\n')
		require.NoError(t, err)
		if strings.HasPrefix(line, ": hb ") {
			break
		}
	}
}

// TestALogMayHaveAnyID: clients choose ids, and only the last @ begins a seq.
func TestALogMayHaveAnyID(t *testing.T) {
	t.Parallel()
	r := start(t)
	const name = "ann@example.com/1"
	l := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal(name)}
	r.happens(l, event.SessionCreatedData{Dialect: "orbit"})
	r.happens(l, event.SessionClosedData{})
	s := r.reads(topics("log:session/" + name + "@1"))
	e := s.must().parse(t, "log")
	require.Equal(t, event.SessionClosed, e.Type)
	require.Equal(t, uint64(2), e.Sequence)
}

// TestTopicsThatMeanNothing are refused with the whole request.
func TestTopicsThatMeanNothing(t *testing.T) {
	t.Parallel()
	r := start(t, authenticated(key("ann", unique(), auth.RoleUser)))
	var nine []string
	for i := range 9 {
		nine = append(nine, fmt.Sprintf("log:task/t%d", i))
	}
	for _, names := range [][]string{{"weather"}, {"log:inbox/x"}, {"log:session"}, {"log:session/"}, {"log:task/x@y"}, {"events", "events"}, {""}, nine} {
		status, body, _ := r.get(topics(names...), bearer("ann")...)
		require.Equal(t, http.StatusUnprocessableEntity, status, "%v: %s", names, body)
	}
	status, body, _ := r.get(topics("log:task/x"), append(bearer("ann"), "Last-Event-ID", "seven")...)
	require.Equal(t, http.StatusUnprocessableEntity, status, body)
	status, _, _ = r.get(topics("events"), bearer("nobody")...)
	require.Equal(t, http.StatusUnauthorized, status)
}
