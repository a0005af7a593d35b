package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rs/zerolog"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/gateway/api"
	"github.com/waggle-dev/waggle/gateway/api/apitest"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/auth"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// anywhere does not look at addresses.
type anywhere struct{ auth auth.Authenticator }

func (a anywhere) Authenticate(ctx context.Context, _, token string) (auth.Principal, error) {
	return a.auth.Authenticate(ctx, token)
}

var update = flag.Bool("update", false, "write docs/openapi.json")

// TestDocumentIsCurrent: the committed document is that of the table.
func TestDocumentIsCurrent(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "openapi.json")
	want, err := api.Document()
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(path, want, 0o644))
	}
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(have), "run make generate")
}

// TestEveryRouteIsInTheDocument: the mux answers exactly the routes of the document.
func TestEveryRouteIsInTheDocument(t *testing.T) {
	served := func(http.ResponseWriter, *http.Request) {}
	mux := http.NewServeMux()
	api.New(api.Config{
		Edge: &edge.Edge{Logger: zerolog.Nop()}, Auth: anywhere{auth.Anonymous()}, Status: func() wire.Status { return wire.Status{} },
		Settings: func() wire.SettingList { return wire.SettingList{} }, Rates: func() wire.RateList { return wire.RateList{} }, Reports: served,
		Examine: func(context.Context) (wire.Installation, error) { return wire.Installation{}, nil },
		Connections: func(context.Context, cmd.ConnectionsRequest) (wire.ConnectionList, error) {
			return wire.ConnectionList{}, nil
		},
		Stream: func(id.Kind) http.HandlerFunc { return served }, Live: served,
		Translate: func(subject.Log, url.Values) (api.Translation, error) { return api.Translation{}, nil },
	}).Mount(mux)
	c, err := apitest.Current()
	require.NoError(t, err)
	var routes []string
	for _, r := range api.Routes() {
		routes = append(routes, r.Method+" "+api.Prefix+r.Path)
	}
	require.ElementsMatch(t, routes, c.Routes())
	for _, r := range api.Routes() {
		_, pattern := mux.Handler(httptest.NewRequestWithContext(t.Context(), r.Method, api.Prefix+r.Path, nil))
		require.Equal(t, r.Method+" "+api.Prefix+r.Path, pattern)
	}
}

// TestTheContractRefuses: responses beside the document do not pass.
func TestTheContractRefuses(t *testing.T) {
	c, err := apitest.Current()
	require.NoError(t, err)
	check := func(method, path string, status int, media, body string) error {
		r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
		return c.Check(r, status, http.Header{"Content-Type": {media}}, []byte(body))
	}
	const sessions, list, problem = "/api/v1/sessions", `{"sessions":[]}`, `{"type":"about:blank","title":"FORBIDDEN","status":403,"detail":"x"}`
	require.NoError(t, check("GET", sessions, 200, "application/json", list))
	require.NoError(t, check("GET", sessions, 403, "application/problem+json", problem))
	require.NoError(t, check("DELETE", sessions+"/s", 204, "", ""))
	require.Error(t, check("GET", sessions, 200, "text/plain", list))
	require.Error(t, check("GET", sessions, 200, "application/json", `{"sessions":null}`))
	require.Error(t, check("GET", sessions, 200, "application/json", `{"sessions":[{}]}`))
	require.Error(t, check("GET", sessions, 201, "application/json", list))
	require.Error(t, check("GET", sessions, 403, "application/problem+json", `{}`))
	require.Error(t, check("DELETE", sessions+"/s", 204, "", "x"))
	require.Error(t, check("GET", "/api/v1/nothing", 200, "application/json", list))
}

// TestTheDocumentHelpsItsReader: each operation belongs to a group that is described, and has a request for the command line; each
// body has an example that its schema takes.
func TestTheDocumentHelpsItsReader(t *testing.T) {
	text, err := api.Document()
	require.NoError(t, err)
	var d struct {
		Info  struct{ License struct{ Identifier string } }
		Tags  []struct{ Name, Description string }
		Paths map[string]map[string]struct {
			OperationID string
			Tags        []string
			Samples     []struct{ Source string } `json:"x-codeSamples"`
			RequestBody *struct {
				Content map[string]struct {
					Example any
					Schema  struct {
						Ref string `json:"$ref"`
					}
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &d))
	require.Equal(t, "Apache-2.0", d.Info.License.Identifier)
	groups := map[string]bool{}
	for _, g := range d.Tags {
		require.NotEmpty(t, g.Description)
		groups[g.Name] = false
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("urn:doc", doc))
	for path, of := range d.Paths {
		for method, op := range of {
			require.Contains(t, groups, op.Tags[0])
			groups[op.Tags[0]] = true
			require.Contains(t, op.Samples[0].Source, path)
			if op.RequestBody == nil {
				continue
			}
			body := op.RequestBody.Content["application/json"]
			require.NotNil(t, body.Example, "%s %s", method, path)
			if body.Schema.Ref != "" {
				s, err := c.Compile("urn:doc" + body.Schema.Ref)
				require.NoError(t, err)
				require.NoError(t, s.Validate(body.Example), "%s %s", method, path)
			}
		}
	}
	require.NotContains(t, slices.Collect(maps.Values(groups)), false)
}
