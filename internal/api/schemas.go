package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/proto-schemas/bundle"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

const schemasPath = "/api/v1/schemas"

// published is a bundle of JSON Schemas, ready to serve.
type published struct {
	Name string `json:"name"`
	ID   string `json:"$id"`
	URL  string `json:"url"`
	text string
	etag string
}

// Schemas adds the JSON Schemas of all dialects to a mux:
//
//	GET /api/v1/schemas
//	GET /api/v1/schemas/{dialect}
//
// They are documentation and do not require credentials. The ETag of a bundle derives from its bytes, so gateways of
// one version agree.
func Schemas(mux *http.ServeMux, log zerolog.Logger) {
	s, byName := Server{Logger: log}, map[string]published{}
	var list struct {
		Schemas []published `json:"schemas"`
	}
	for _, b := range bundle.All() {
		sum := sha256.Sum256([]byte(b.JSON))
		p := published{b.Name, b.ID, schemasPath + "/" + b.Name, b.JSON, `"` + hex.EncodeToString(sum[:16]) + `"`}
		list.Schemas, byName[b.Name] = append(list.Schemas, p), p
	}
	mux.HandleFunc("GET "+schemasPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(list); err != nil {
			s.Logger.Debug().Err(err).Msg("fail to write list of schemas")
		}
	})
	mux.HandleFunc("GET "+schemasPath+"/{dialect}", func(w http.ResponseWriter, r *http.Request) {
		p, ok := byName[r.PathValue("dialect")]
		if !ok {
			s.problem(w, fault.New(fault.NotFound))
			return
		}
		h := w.Header()
		h.Set("Content-Type", "application/schema+json")
		h.Set("ETag", p.etag)
		h.Set("Cache-Control", "no-cache") // Ask again: another version of the gateway may answer.
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(p.text))
	})
}
