package binding

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Wildcards of paths that name the target of their connections: a team, or a member of one.
const (
	pathTeam  = "team_id"
	pathAgent = "agent_id"
)

// Parameters of the query.
const (
	QueryAfter   = "after"   // the last event seen
	QuerySession = "session" // the session to continue
	QueryWatch   = "watch"   // the run to show, of any dialect: <kind>/<id>
)

// Target is the run that the path or the query of a request names.
type Target struct {
	Kind    id.Kind // empty: no kind of run has the name
	Name    string  // id as the client knows it
	ByQuery bool
}

// TargetOf returns the target of a request, nil if it names none. The path comes before the
// query.
func TargetOf(r *http.Request, query url.Values) (*Target, error) {
	if name := r.PathValue(pathTeam); name != "" {
		return &Target{Kind: id.KindTeam, Name: name}, nil
	}
	if name := r.PathValue(pathAgent); name != "" {
		return &Target{Kind: id.KindMember, Name: name}, nil
	}
	values, ok := query[QueryWatch]
	switch {
	case !ok:
		return nil, nil //nolint:nilnil // naming nothing is no error
	case query.Has(QuerySession):
		return nil, fault.Newf(fault.InvalidField, "Use either session or watch, not both.").At(QueryWatch)
	}
	t := &Target{ByQuery: true}
	kind, name, _ := strings.Cut(values[0], "/")
	switch k := id.Kind(kind); {
	case len(values) > 1 || name == "":
	case k == id.KindSession, k == id.KindTask, k == id.KindMember, k == id.KindTeam:
		t.Kind, t.Name = k, name
	}
	return t, nil
}

// Log returns the log of the target within the tenant.
func (t *Target) Log(tenant id.Tenant) subject.Log {
	return subject.Log{Tenant: tenant, Kind: t.Kind, Entity: id.EntityFromExternal(t.Name)}
}

// Called reports whether a frame that names the id means the target. No target has a name.
func (t *Target) Called(name string) bool {
	return t != nil && (name == t.Name || name == id.EntityFromExternal(t.Name).String())
}

// Find returns the log of a target, its end, and the session that the log is to become: see edge.Client.Ends. The log of another
// principal is answered exactly as one that does not exist. The error is a fault.
func Find(c Connection, t *Target) (log subject.Log, last eventlog.Cursor, u *edge.Unopened, err error) {
	missing := fault.New(fault.RunNotFound)
	if log = t.Log(c.Client().Principal().Tenant); t.Kind == "" {
		return log, last, nil, missing
	}
	if last, u, err = c.Client().Ends(c.Context(), log, missing); err != nil {
		return log, last, nil, c.FaultOf(err)
	}
	return log, last, u, nil
}

// After reads the position of the query in a log that ends at last.
func After(c Connection, last eventlog.Cursor) (eventlog.Cursor, error) {
	after, err := eventlog.ParseCursor(c.Query().Get(QueryAfter))
	if err != nil || after.Seq > last.Seq {
		return eventlog.Cursor{}, fault.New(fault.CursorInvalid).At(QueryAfter).Wrap(err)
	}
	return after, nil
}
