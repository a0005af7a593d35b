package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/gateway/api/openapi"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/auth"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/bundle"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// system is what programs ask before they know anything: who they are, and how the API works.
type system struct {
	*parts
	state   func() wire.Status // may be nil
	console wire.ConsoleInfo
	reports http.HandlerFunc // may be nil
}

// ReportsPath is the path of the reports of browsers about pages that broke their security policy.
const ReportsPath = Prefix + reportsRoute

const (
	reportsRoute = "/csp-reports"
	schemasPath  = Prefix + "/schemas"
)

// IsDocumentation reports whether the path is one of the schemas and the OpenAPI document, which
// are the same for all clients.
func IsDocumentation(path string) bool {
	return path == Prefix+"/openapi.json" || path == schemasPath || strings.HasPrefix(path, schemasPath+"/")
}

func (s system) routes() []Route {
	status := Route{
		Method: "GET", Path: "/status", ID: "showStatus", Tag: "system", Summary: "Show the roles, models and tool servers of the installation.",
		Answers: json200("The status.", wire.Status{}),
	}
	if s.state != nil {
		status.Handler = s.server.Serve(func(*http.Request, *edge.Client) (any, error) { return s.state(), nil })
	}
	return []Route{
		status,
		{
			Method: "GET", Path: "/me", ID: "showMe", Tag: "system", Summary: "Show the principal of the credentials and its rights.",
			Answers: json200("The principal.", wire.Me{}), Handler: s.server.Serve(s.me),
		},
		{
			Method: "GET", Path: "/console", ID: "showConsole", Tag: "system", Summary: "Show how people sign in to the console, and what it may do here.", Public: true,
			Header:  ifNoneMatch,
			Answers: []openapi.Answer{{Status: http.StatusOK, About: "The ways.", Type: wire.ConsoleInfo{}}, notModified},
			Handler: s.document("application/json", func() (string, error) {
				b, err := json.Marshal(s.console)
				return string(b), err
			}),
		},
		{
			Method: "POST", Path: reportsRoute, ID: "reportPage", Tag: "system", Public: true,
			Summary: "Count reports of a browser about pages of the console that broke their security policy: application/csp-report or application/reports+json.",
			Answers: []openapi.Answer{{Status: http.StatusNoContent, About: "The reports are counted."}}, Faults: []fault.Code{fault.NotFound, fault.BadJSON, fault.MessageTooBig},
			Handler: s.reports,
		},
		{
			Method: "GET", Path: "/schemas", ID: "listSchemas", Tag: "system", Summary: "List the JSON Schemas of all protocols.", Public: true,
			Answers: json200("The bundles.", wire.SchemaList{}), Handler: s.schemas,
		},
		{
			Method: "GET", Path: "/schemas/{dialect}", ID: "showSchema", Tag: "system", Summary: "Show the JSON Schemas of a protocol.", Public: true,
			Header:  ifNoneMatch,
			Answers: []openapi.Answer{{Status: http.StatusOK, About: "The bundle.", Media: "application/schema+json"}, notModified},
			Faults:  []fault.Code{fault.NotFound}, Handler: s.schema(),
		},
		{
			Method: "GET", Path: "/openapi.json", ID: "showDocument", Tag: "system", Summary: "Show this document.", Public: true, Header: ifNoneMatch,
			Answers: []openapi.Answer{{Status: http.StatusOK, About: "The document.", Media: "application/json"}, notModified},
			Handler: s.document("application/json", func() (string, error) {
				b, err := Document()
				return string(b), err
			}),
		},
	}
}

// me answers with the principal of the request.
func (system) me(_ *http.Request, who *edge.Client) (any, error) {
	p := who.Principal()
	out := wire.Me{Subject: p.Subject, Tenant: p.Tenant.String(), Roles: []string{}, May: []string{}, Expires: p.Expires}
	for _, role := range p.Roles {
		out.Roles = append(out.Roles, string(role))
	}
	for _, right := range []struct {
		name string
		has  bool
	}{{"watch", p.MayWatch()}, {"act", p.MayAct()}, {"operate", p.Has(auth.RoleOperator)}} {
		if right.has {
			out.May = append(out.May, right.name)
		}
	}
	return out, nil
}

// schemas serves the list of the bundles of JSON Schemas. They are documentation and do not require credentials.
func (s system) schemas(w http.ResponseWriter, _ *http.Request) {
	var list wire.SchemaList
	for _, b := range bundle.All() {
		list.Schemas = append(list.Schemas, wire.SchemaRef{Name: b.Name, ID: b.ID, URL: schemasPath + "/" + b.Name})
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(list); err != nil {
		s.edge.Logger.Debug().Err(err).Msg("failed to write schema list")
	}
}

// schema serves the bundle that the path names.
func (s system) schema() http.HandlerFunc {
	byName := map[string]http.HandlerFunc{}
	for _, b := range bundle.All() {
		byName[b.Name] = s.document("application/schema+json", func() (string, error) { return b.JSON(), nil })
	}
	return func(w http.ResponseWriter, r *http.Request) {
		serve, ok := byName[r.PathValue("dialect")]
		if !ok {
			s.server.Problem(w, fault.New(fault.NotFound))
			return
		}
		serve(w, r)
	}
}

// document serves a text that is made for the first request. Its ETag derives from its bytes, so gateways of one version agree.
func (s system) document(media string, text func() (string, error)) http.HandlerFunc {
	type document struct{ text, tag string }
	made := sync.OnceValues(func() (d document, err error) {
		if d.text, err = text(); err == nil {
			sum := sha256.Sum256([]byte(d.text))
			d.tag = `"` + hex.EncodeToString(sum[:16]) + `"`
		}
		return d, err
	})
	return func(w http.ResponseWriter, r *http.Request) {
		d, err := made()
		if err != nil { // a test holds that the routes and the schemas agree
			s.server.Problem(w, err)
			return
		}
		h := w.Header()
		h.Set("Content-Type", media)
		h.Set("ETag", d.tag)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(d.text))
	}
}
