package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Mount registers the routes.
func (a *API) Mount(mux *http.ServeMux) {
	for _, r := range Routes() {
		if h := r.handler(a); h != nil {
			mux.HandleFunc(r.Method+" "+Prefix+r.Path, h)
		}
	}
}

// Document returns the OpenAPI 3.1 document of the routes. Its schemas are those of proto-schemas/api.
func Document() ([]byte, error) {
	schemas, err := components()
	if err != nil {
		return nil, err
	}
	paths := map[string]object{}
	for _, r := range Routes() {
		path := Prefix + r.Path
		if paths[path] == nil {
			paths[path] = object{}
		}
		op, err := r.operation(schemas)
		if err != nil {
			return nil, err
		}
		paths[path][strings.ToLower(r.Method)] = op
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err = e.Encode(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Waggle HTTP API", "version": "1",
			"description": "Sessions, tasks, teams and the swarm of a Waggle gateway. Bodies may gain members. An installation without " +
				"authentication needs no credentials. Stored events have the schemas of " + schemasPath + "/event.",
		},
		"servers": []object{{"url": "/"}},
		"paths":   paths,
		"components": object{
			"schemas": schemas,
			"securitySchemes": object{
				"token": object{"type": "http", "scheme": "bearer", "description": "An API key or a JWT."},
				"key":   object{"type": "apiKey", "in": "header", "name": "X-API-Key"},
			},
		},
		"security": []object{{"token": []string{}}, {"key": []string{}}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the OpenAPI document: %w", err)
	}
	return b.Bytes(), nil
}

// showDocument serves the document. It is documentation and does not require credentials.
func (a *API) showDocument() http.HandlerFunc {
	text, err := Document()
	if err != nil { // a test holds that the table and the schemas agree
		return func(w http.ResponseWriter, _ *http.Request) { a.server.problem(w, err) }
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
			Answers: []Answer{
				{Status: http.StatusOK, About: "The ways.", Type: wire.ConsoleInfo{}}, {Status: http.StatusNotModified, About: "The ETag matches."},
			},
			handler: (*API).showConsole,
		},
		{
			Method: "POST", Path: reportsRoute, ID: "reportPage", Tag: "system", Public: true,
			Summary: "Count reports of a browser about pages of the console that broke their security policy: application/csp-report or application/reports+json.",
			Answers: []Answer{{Status: http.StatusNoContent, About: "The reports are counted."}}, Faults: []fault.Code{fault.NotFound, fault.BadJSON, fault.MessageTooBig},
			handler: func(a *API) http.HandlerFunc { return a.cfg.Reports },
		},
		{
			Method: "GET", Path: "/me", ID: "showMe", Tag: "system", Summary: "Show the principal of the credentials and its rights.",
			Answers: json200("The principal.", wire.Me{}), handler: authenticated((*API).me),
		},
		{
			Method: "GET", Path: "/status", ID: "showStatus", Tag: "system", Summary: "Show the roles, models and tool servers of the installation.",
			Answers: json200("The status.", wire.Status{}), handler: (*API).status,
		},
		{
			Method: "GET", Path: "/schemas", ID: "listSchemas", Tag: "system", Summary: "List the JSON Schemas of all protocols.", Public: true,
			Answers: json200("The bundles.", wire.SchemaList{}), handler: (*API).listSchemas,
		},
		{
			Method: "GET", Path: "/schemas/{dialect}", ID: "showSchema", Tag: "system", Summary: "Show the JSON Schemas of a protocol.", Public: true,
			Header: ifNoneMatch,
			Answers: []Answer{
				{Status: http.StatusOK, About: "The bundle.", Media: "application/schema+json"}, {Status: http.StatusNotModified, About: "The ETag matches."},
			},
			Faults: []fault.Code{fault.NotFound}, handler: (*API).showSchema,
		},
		{
			Method: "GET", Path: "/openapi.json", ID: "showDocument", Tag: "system", Summary: "Show this document.", Public: true, Header: ifNoneMatch,
			Answers: []Answer{
				{Status: http.StatusOK, About: "The document.", Media: "application/json"}, {Status: http.StatusNotModified, About: "The ETag matches."},
			},
			handler: (*API).showDocument,
		},
	}
}
