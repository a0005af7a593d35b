package binding

import (
	"net/http"
	"net/url"
	"strings"

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
		return nil, fault.Newf(fault.InvalidField, "A socket shows either your session or the run that you watch. Leave one of them out.").At(QueryWatch)
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

// Find returns the log of a target and its end, which is zero for a session that is to be
// opened. The log of another principal is answered exactly as one that does not exist.
func (g *Gateway) Find(c interface {
	Client
	Reporter
}, t *Target,
) (log subject.Log, last eventlog.Cursor, err error) {
	p := c.Principal()
	if log = t.Log(p.Tenant); t.Kind == "" || !p.Owns(log) {
		return log, last, fault.New(fault.RunNotFound)
	}
	if last, err = g.Log.Last(c.Context(), log); err != nil {
		return log, last, c.FaultOf(err)
	}
	if last.Seq == 0 {
		if _, awaited := g.Awaited(p, log); !awaited {
			return log, last, fault.New(fault.RunNotFound)
		}
		return log, last, nil
	}
	seen, err := g.Sight.Sees(c.Context(), p, log)
	if err != nil {
		return log, last, c.FaultOf(err)
	}
	if !seen {
		return log, last, fault.New(fault.RunNotFound)
	}
	return log, last, nil
}

// After reads the position of the query in a log that ends at last.
func After(c Client, last eventlog.Cursor) (eventlog.Cursor, error) {
	after, err := eventlog.ParseCursor(c.Query().Get(QueryAfter))
	if err != nil || after.Seq > last.Seq {
		return eventlog.Cursor{}, fault.New(fault.CursorInvalid).At(QueryAfter).Wrap(err)
	}
	return after, nil
}
