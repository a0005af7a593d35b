package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/gateway/edge"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/bundle"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

const schemasPath = Prefix + "/schemas"

// listSchemas serves the list of the bundles of JSON Schemas. They are documentation and do not require credentials.
func (a *API) listSchemas() http.HandlerFunc {
	var list wire.SchemaList
	for _, b := range bundle.All() {
		list.Schemas = append(list.Schemas, wire.SchemaRef{Name: b.Name, ID: b.ID, URL: schemasPath + "/" + b.Name})
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(list); err != nil {
			a.cfg.Edge.Logger.Debug().Err(err).Msg("failed to write schema list")
		}
	}
}

// showSchema serves the bundle that the path names.
func (a *API) showSchema() http.HandlerFunc {
	byName := map[string]func() http.HandlerFunc{}
	for _, b := range bundle.All() {
		byName[b.Name] = sync.OnceValue(func() http.HandlerFunc { return document("application/schema+json", b.JSON()) })
	}
	return func(w http.ResponseWriter, r *http.Request) {
		serve, ok := byName[r.PathValue("dialect")]
		if !ok {
			a.server.Problem(w, fault.New(fault.NotFound))
			return
		}
		serve()(w, r)
	}
}

// document serves a text with an ETag that derives from its bytes, so gateways of one version agree.
func document(media, text string) http.HandlerFunc {
	sum := sha256.Sum256([]byte(text))
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", media)
		h.Set("ETag", tag)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
	}
}

// status serves the status of the installation.
func (a *API) status() http.HandlerFunc {
	if a.cfg.Status == nil {
		return nil
	}
	return a.server.Serve(func(*http.Request, *edge.Client) (any, error) { return a.cfg.Status(), nil })
}

// showConsole serves how people sign in. It does not require credentials.
func (a *API) showConsole() http.HandlerFunc {
	text, err := json.Marshal(wire.ConsoleInfo{OIDC: a.cfg.Login})
	if err != nil {
		return func(w http.ResponseWriter, _ *http.Request) { a.server.Problem(w, err) }
	}
	return document("application/json", string(text))
}

// ReportsPath is the path of the reports of browsers about pages that broke their security policy.
const ReportsPath = Prefix + reportsRoute

const reportsRoute = "/csp-reports"

// IsDocumentation reports whether the path is one of the schemas and the OpenAPI document, which
// are the same for all clients.
func IsDocumentation(path string) bool {
	return path == Prefix+"/openapi.json" || path == schemasPath || strings.HasPrefix(path, schemasPath+"/")
}
