package api

import (
	"net/http"

	"github.com/waggle-dev/waggle/gateway/api/openapi"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Mount registers the routes.
func (a *API) Mount(mux *http.ServeMux) {
	for _, r := range Routes() {
		if h := r.Handler(a); h != nil {
			mux.HandleFunc(r.Method+" "+Prefix+r.Path, h)
		}
	}
}

//go:generate go test -count=1 -run ^TestDocumentIsCurrent$ -update .

// Document returns the OpenAPI document of the routes.
func Document() ([]byte, error) {
	routes := Routes()
	for i := range routes {
		routes[i].Example = examples[routes[i].ID]
	}
	return openapi.Document(Prefix, routes, groups)
}

// showDocument serves the document. It is documentation and does not require credentials.
func (a *API) showDocument() http.HandlerFunc {
	text, err := Document()
	if err != nil { // a test holds that the table and the schemas agree
		return func(w http.ResponseWriter, _ *http.Request) { a.server.Problem(w, err) }
	}
	return document("application/json", string(text))
}

// Routes returns the table of routes.
func Routes() []Route {
	var all []Route
	for _, some := range [][]Route{sessionRoutes(), actionRoutes(), questionRoutes(), taskRoutes(), participantRoutes(), toolRoutes(), teamRoutes(), logRoutes(), streamRoutes(), deadLetterRoutes(), installationRoutes(), systemRoutes()} {
		all = append(all, some...)
	}
	return all
}

func systemRoutes() []Route {
	return []Route{
		{
			Method: "GET", Path: "/console", ID: "showConsole", Tag: "system", Summary: "Show how people sign in to the console.", Public: true,
			Header: ifNoneMatch,
			Answers: []openapi.Answer{
				{Status: http.StatusOK, About: "The ways.", Type: wire.ConsoleInfo{}}, {Status: http.StatusNotModified, About: "The ETag matches."},
			},
			Handler: (*API).showConsole,
		},
		{
			Method: "POST", Path: reportsRoute, ID: "reportPage", Tag: "system", Public: true,
			Summary: "Count reports of a browser about pages of the console that broke their security policy: application/csp-report or application/reports+json.",
			Answers: []openapi.Answer{{Status: http.StatusNoContent, About: "The reports are counted."}}, Faults: []fault.Code{fault.NotFound, fault.BadJSON, fault.MessageTooBig},
			Handler: func(a *API) http.HandlerFunc { return a.cfg.Reports },
		},
		{
			Method: "GET", Path: "/me", ID: "showMe", Tag: "system", Summary: "Show the principal of the credentials and its rights.",
			Answers: json200("The principal.", wire.Me{}), Handler: authenticated((*API).me),
		},
		{
			Method: "GET", Path: "/status", ID: "showStatus", Tag: "system", Summary: "Show the roles, models and tool servers of the installation.",
			Answers: json200("The status.", wire.Status{}), Handler: (*API).status,
		},
		{
			Method: "GET", Path: "/schemas", ID: "listSchemas", Tag: "system", Summary: "List the JSON Schemas of all protocols.", Public: true,
			Answers: json200("The bundles.", wire.SchemaList{}), Handler: (*API).listSchemas,
		},
		{
			Method: "GET", Path: "/schemas/{dialect}", ID: "showSchema", Tag: "system", Summary: "Show the JSON Schemas of a protocol.", Public: true,
			Header: ifNoneMatch,
			Answers: []openapi.Answer{
				{Status: http.StatusOK, About: "The bundle.", Media: "application/schema+json"}, {Status: http.StatusNotModified, About: "The ETag matches."},
			},
			Faults: []fault.Code{fault.NotFound}, Handler: (*API).showSchema,
		},
		{
			Method: "GET", Path: "/openapi.json", ID: "showDocument", Tag: "system", Summary: "Show this document.", Public: true, Header: ifNoneMatch,
			Answers: []openapi.Answer{
				{Status: http.StatusOK, About: "The document.", Media: "application/json"}, {Status: http.StatusNotModified, About: "The ETag matches."},
			},
			Handler: (*API).showDocument,
		},
	}
}
