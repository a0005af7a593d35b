package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// everybody are the principals of the tests about owners: robot executes the tasks.
var everybody = []option{authenticated(
	key("ann", "red", auth.RoleUser), key("ben", "red", auth.RoleUser), key("robot", "red", auth.RoleUser, auth.RoleAgent), key("op", "red", auth.RoleOperator),
	key("viewer", "red", auth.RoleViewer), key("eve", "blue", auth.RoleOperator),
)}

// ownedBy makes a log of the kind that belongs to a principal. Without one it has no owner, as those of earlier versions.
func (r *rig) ownedBy(kind id.Kind, owner string) subject.Log {
	r.t.Helper()
	l := subject.Log{Tenant: mustTenant(r.t, "red"), Kind: kind, Entity: id.EntityFromExternal(unique())}
	var first event.Data
	switch kind {
	case id.KindTeam:
		first = event.TeamCreatedData{TeamID: l.Entity.String(), Principal: owner}
	case id.KindMember:
		entity, err := id.MemberAgent(l.Entity, "Coder")
		require.NoError(r.t, err)
		l.Entity = entity
		first = event.MemberCreatedData{MemberID: entity.String(), Principal: owner}
	case id.KindTask:
		first = event.TaskCreatedData{TaskHead: event.TaskHead{TaskID: l.Entity.String(), AgentID: "robot"}, Principal: owner}
	default: // of the built-in agent
		first = event.SessionCreatedData{Dialect: "swarm", Owner: owner}
	}
	require.NoError(r.t, r.append(l, "created", first))
	return l
}

// pagesOf are the addresses under which the log is read.
func pagesOf(l subject.Log) []string {
	logs := fmt.Sprintf("/api/v1/logs/%s/%s", l.Kind, l.Entity)
	out := []string{logs + "/head", logs + "/events", logs + "/snapshot", logs + "/frames?as=orbit", logs + "/artifacts/x"}
	switch l.Kind {
	case id.KindTeam:
		base := "/agui/teams/" + l.Entity.String() + "/threads/any"
		return append(out, "/api/v1/teams/"+l.Entity.String()+"/stream", base, base+"/messages", base+"/runs/r")
	case id.KindTask:
		return append(out, "/api/v1/tasks/"+l.Entity.String()+"/stream")
	}
	return out
}

// TestRunsOfOthers: whichever way a principal asks for a team, a member, a task or the session of one, what it does not see answers
// like what does not exist.
func TestRunsOfOthers(t *testing.T) {
	t.Parallel()
	for see, others := range map[string]bool{"": false, access.Owner: false, access.Tenant: true} {
		s := startAll(t, append(everybody, func(_ *gateway.Config, d *gateway.Deps) { d.Access.Default.See = see })...)
		sees := map[string]bool{"ann": true, "ben": others, "robot": others, "op": true, "viewer": true, "eve": false}
		for _, kind := range []id.Kind{id.KindTeam, id.KindMember, id.KindTask, id.KindSession} {
			l, free := s.ownedBy(kind, "who-ann"), s.ownedBy(kind, "")
			none := l
			none.Entity = id.EntityFromExternal(unique())
			if kind == id.KindMember {
				none.Entity, _ = id.MemberAgent(none.Entity, "Coder")
			}
			for who, seen := range sees {
				t.Run(fmt.Sprintf("%s of ann, see %q, %s", kind, see, who), func(t *testing.T) {
					s.canRead(t, l, none, who, seen)
					s.canRead(t, free, none, who, who != "eve")
					s.canWatch(t, l, who, seen)
					if kind == id.KindTeam && !seen {
						s.cannotWrite(t, l, none, who)
					}
				})
			}
		}
	}
}

// canRead holds that the principal sees all pages of the log, or of each as much as of a log that does not exist.
func (s *swarm) canRead(t *testing.T, l, none subject.Log, who string, sees bool) {
	t.Helper()
	missing := pagesOf(none)
	for i, path := range pagesOf(l) {
		if sees && (strings.Contains(path, "/stream") || strings.HasSuffix(path, "/any") || strings.HasSuffix(path, "/x")) {
			continue // it does not end, or has no such file
		}
		got, body, _ := s.get(path, bearer(who)...)
		want, absent, _ := s.get(missing[i], bearer(who)...)
		absent = strings.ReplaceAll(absent, none.Entity.String(), l.Entity.String())
		if sees {
			require.NotEqual(t, absent, body, "%s is shown %s", who, path)
			continue
		}
		require.Equal(t, http.StatusNotFound, got, "%s %s: %s", who, path, body)
		require.Equal(t, want, got, path)
		require.Equal(t, untraced(absent), untraced(body), "%s learns of %s", who, path)
	}
}

// cannotWrite holds that requests of AG-UI to a team are answered as those to one that does not exist, and reach no service.
func (s *swarm) cannotWrite(t *testing.T, l, none subject.Log, who string) {
	t.Helper()
	for path, body := range map[string]string{
		"":                     ask("any", "one"),
		"/threads/any/cancel":  `{}`,
		"/threads/any/answers": `{"resume":[{"interruptId":"q","status":"resolved","payload":true}]}`,
	} {
		got, text := s.post("/agui/teams/"+l.Entity.String()+path, body, bearer(who)...)
		want, absent := s.post("/agui/teams/"+none.Entity.String()+path, body, bearer(who)...)
		require.Equal(t, want, got, "%s %s: %s", who, path, text)
		require.Equal(t, http.StatusNotFound, got, "%s %s: %s", who, path, text)
		require.Equal(t, untraced(strings.ReplaceAll(absent, none.Entity.String(), l.Entity.String())), untraced(text), path)
	}
	require.Empty(t, s.inbox(l.Entity.String()), "the services were sent nothing")
}

// untraced returns a problem without what differs each time.
func untraced(problem string) string {
	head, _, _ := strings.Cut(problem, `"trace_id"`)
	return head
}

// canWatch holds that the principal is shown the log on sockets of all bindings, or on none.
func (s *swarm) canWatch(t *testing.T, l subject.Log, who string, sees bool) {
	t.Helper()
	for _, w := range watchers(t) {
		if w.path == pathClient && !sees && who == "viewer" {
			continue
		}
		c := s.open(w.path, "watch="+string(l.Kind)+"/"+l.Entity.String(), bearer(who)...)
		if sees {
			w.see(c, l)
			c.leave()
			continue
		}
		w.deny(c, fault.RunNotFound, 4404)
	}
	topic := topicOf(l, 0)
	stream := s.reads(topics(topic), bearer(who)...)
	defer stream.leave()
	if m := stream.must(); sees {
		require.Equal(t, l.Name(), m.parse(t, "log").Subject)
	} else {
		named, code := m.refused(t)
		require.Equal(t, topic, named)
		require.Contains(t, code, "NOT_FOUND")
	}
}

// TestAnnouncementsOfRunsOfOthers: updates about a team, a member or a task come to those who see it.
func TestAnnouncementsOfRunsOfOthers(t *testing.T) {
	t.Parallel()
	for see, others := range map[string]bool{"": false, access.Tenant: true} {
		r := start(t, append(everybody, func(_ *gateway.Config, d *gateway.Deps) { d.Access.Default.See = see })...)
		for who, sees := range map[string]bool{"ann": true, "ben": others, "robot": others, "op": true, "viewer": true} {
			stream := r.reads("/api/v1/live", bearer(who)...)
			for _, kind := range []id.Kind{id.KindTeam, id.KindMember, id.KindTask} {
				of := r.ownedBy(kind, "who-ann")
				free := r.ownedBy(kind, "") // a sign that the announcement before has been passed over
				if sees {
					require.Equal(t, of.Name(), stream.must().of(t).Subject, "%s see %q", who, see)
				}
				require.Equal(t, free.Name(), stream.must().of(t).Subject, "%s see %q", who, see)
			}
			stream.leave()
		}
	}
}
