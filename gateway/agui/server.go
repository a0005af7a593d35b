package agui

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/waggle-dev/waggle/gateway/agui/fold"
	"github.com/waggle-dev/waggle/gateway/agui/fold/input"
	"github.com/waggle-dev/waggle/gateway/agui/thread"
	"github.com/waggle-dev/waggle/gateway/api/request"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/gateway/transport/sse"
	"github.com/waggle-dev/waggle/internal/strictjson"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// server answers the requests.
type server struct {
	*thread.Threads
	version string // of Waggle
}

// pathTeam is the wildcard of the team whose log a thread shows.
const pathTeam = "team_id"

// pathAgent is the wildcard of the agent of the swarm that answers the messages of a request.
const pathAgent = "agent"

// place returns the thread with the name in the tenant of the client. All threads of a team show its log.
func place(r *http.Request, c *edge.Client, name string, v fold.Variant, to thread.Response) thread.Place {
	at := thread.Place{Name: name, Variant: v, To: to}
	at.Log = subject.Log{Tenant: c.Principal().Tenant, Kind: id.KindSession, Entity: id.EntityFromExternal(name)}
	if team := r.PathValue(pathTeam); team != "" {
		at.Log.Kind, at.Log.Entity = id.KindTeam, id.EntityFromExternal(team)
	}
	return at
}

// answers returns who answers the messages of a request.
func answers(r *http.Request) input.To {
	return input.To{Agent: r.PathValue(pathAgent), Team: r.PathValue(pathTeam) != ""}
}

// variant returns the variant that a client takes: an older one where it says no version.
func variant(r *http.Request, older bool) fold.Variant {
	q := r.URL.Query()
	switch {
	case strings.HasPrefix(q.Get("version"), "1."), !older && q.Get("version") == "":
		return fold.V1
	case q.Get("subagents") == "1":
		return fold.V0Subagents
	}
	return fold.V0
}

// position returns where a client that comes back stands, nil for one that has nothing.
func position(r *http.Request) (*transport.Position, error) {
	text, field := r.Header.Get(sse.HeaderResume), sse.HeaderResume
	if text == "" {
		text, field = r.URL.Query().Get("after"), "after"
	}
	if text == "" {
		return nil, nil
	}
	at, ok := transport.ParsePosition(text)
	if !ok {
		return nil, fault.Newf(fault.CursorInvalid, "%s is not the id of an event of the thread. Use the id of the last event that you received.", field).At(field)
	}
	return &at, nil
}

// decode reads the body strictly.
func decode(r *http.Request, into any) error {
	body, err := io.ReadAll(r.Body)
	if _, big := errors.AsType[*http.MaxBytesError](err); big {
		return fault.New(fault.MessageTooBig)
	}
	if err != nil {
		return fault.New(fault.BadJSON).Wrap(err)
	}
	if err := request.JSON(r); len(body) > 0 && err != nil {
		return err
	}
	return strictjson.Decode(body, into)
}
