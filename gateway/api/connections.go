package api

import (
	"context"
	"net/http"

	"github.com/waggle-dev/waggle/gateway/api/openapi"
	"github.com/waggle-dev/waggle/gateway/edge"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// connections are those of clients with all gateways.
type connections struct {
	*parts
	list func(context.Context, cmd.ConnectionsRequest) (wire.ConnectionList, error) // may be nil
}

// The parameters of the list, which has no pages: it is about now.
var (
	connectionLimit   = count{openapi.Parameter{Name: "limit", About: "Connections of the list; 100 by default.", Type: "integer", Maximum: 500}, 100}
	connectionGateway = short("gateway", "Instance of the gateway.", 64)
	connectionLagging = chosen("lagging", "true: only connections that lag.", "true", "false")
)

func (c connections) routes() []Route {
	r := Route{
		Method: "GET", Path: "/connections", ID: "listConnections", Tag: "installation",
		Summary: "List the connections of the tenant's clients with all gateways: what they watch, and which lag and why. Gateways that do not answer within a second are named. For operators.",
		Query:   []openapi.Parameter{connectionGateway.Parameter, connectionLagging.Parameter, connectionLimit.Parameter},
		Answers: json200("The connections.", wire.ConnectionList{}), Faults: []fault.Code{fault.InvalidField},
	}
	if c.list != nil {
		r.Handler = c.server.Serve(operating(c.all))
	}
	return []Route{r}
}

// all answers with the connections that fit the query.
func (c connections) all(r *http.Request, who *edge.Client) (any, error) {
	q := queryOf(r)
	in := cmd.ConnectionsRequest{
		Tenant: who.Principal().Tenant, Gateway: q.text(connectionGateway), Lagging: q.choice(connectionLagging) == "true", Limit: q.count(connectionLimit),
	}
	if q.err != nil {
		return nil, q.err
	}
	return c.list(r.Context(), in)
}
