package gateway

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Wildcards of paths that name what their sockets show: a team, or a member of one.
const (
	pathTeam  = "team_id"
	pathAgent = "agent_id"
)

// queryWatch is the parameter of a socket that shows a run, of whatever dialect that
// was begun in: <kind>/<id>.
const queryWatch = "watch"

// watched is the run that the path or the query of a socket names.
type watched struct {
	kind    id.Kind // empty: what was named is none
	name    string  // id as the client knows it
	byQuery bool
}

// watchedOf returns what a request wants to watch, nil if it names nothing. The path
// comes before the query.
func watchedOf(r *http.Request, query url.Values) (*watched, error) {
	if name := r.PathValue(pathTeam); name != "" {
		return &watched{kind: id.KindTeam, name: name}, nil
	}
	if name := r.PathValue(pathAgent); name != "" {
		return &watched{kind: id.KindMember, name: name}, nil
	}
	values, ok := query[queryWatch]
	switch {
	case !ok:
		return nil, nil //nolint:nilnil // naming nothing is no error
	case query.Has(querySession):
		return nil, fault.Newf(fault.InvalidField, "A socket shows either a session of yours or what you watch. Leave one of them out.").At(queryWatch)
	}
	w := &watched{byQuery: true}
	kind, name, _ := strings.Cut(values[0], "/")
	switch k := id.Kind(kind); {
	case len(values) > 1 || name == "":
	case k == id.KindSession, k == id.KindTask, k == id.KindMember, k == id.KindTeam:
		w.kind, w.name = k, name
	}
	return w, nil
}

// log returns the log of the run within the tenant.
func (w *watched) log(t id.Tenant) subject.Log {
	return subject.Log{Tenant: t, Kind: w.kind, Entity: id.EntityFromExternal(w.name)}
}

// called reports whether a frame that names the id means the run.
func (w *watched) called(name string) bool {
	return name == w.name || name == id.EntityFromExternal(w.name).String()
}

// find returns the log of the run that the socket's query names and where it ends. A run
// of somebody else is answered exactly as one that does not exist, and as what is none.
func (c *conn) find(w *watched) (log subject.Log, last eventlog.Cursor, err error) {
	p := c.who()
	if log = w.log(p.Tenant); w.kind == "" || !p.Owns(log) {
		return log, last, fault.New(fault.RunNotFound)
	}
	last, err = c.s.dep.Log.Last(c.ctx, log)
	switch {
	case err != nil:
		return log, last, c.faultOf(err)
	case last.Seq == 0:
		return log, last, fault.New(fault.RunNotFound)
	}
	return log, last, nil
}

// aim hands commands that are addressed to the log that a socket shows to whoever
// manages it.
func (c *conn) aim(log subject.Log, cmds []command.Command) (err error) {
	taskID := log.Entity.String()
	if w := c.watch; w != nil && w.called(taskID) {
		taskID = w.name
	}
	for i := range cmds {
		if cmds[i], err = aim(log, taskID, cmds[i]); err != nil {
			return err
		}
	}
	return nil
}

// lifetime returns a context that ends with the socket.
func (c *conn) lifetime() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(c.ctx)
	go func() {
		select {
		case <-c.sock.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
