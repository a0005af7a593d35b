// Package apitest holds responses of the HTTP API against its OpenAPI document.
package apitest

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/waggle-dev/waggle/gateway/api"
)

// Contract is the OpenAPI document, as a client reads it. It is safe for concurrent use.
type Contract struct {
	paths    map[string]map[string]operation
	mux      *http.ServeMux
	mu       sync.Mutex
	compiler *jsonschema.Compiler
}

type operation map[string]any

// location is the document's address for references.
const location = "openapi.json"

// Read returns the contract of the document.
func Read(document []byte) (*Contract, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	c := &Contract{paths: map[string]map[string]operation{}, mux: http.NewServeMux(), compiler: jsonschema.NewCompiler()}
	if err := c.compiler.AddResource(location, doc); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	for path, item := range member(doc, "paths") {
		c.paths[path] = map[string]operation{}
		for method := range member(item) {
			c.paths[path][strings.ToUpper(method)] = member(item, method)
			c.mux.Handle(strings.ToUpper(method)+" "+path, http.NotFoundHandler())
		}
	}
	return c, nil
}

// member returns the object at the end of a path of members, nil if it is absent.
func member(v any, names ...string) map[string]any {
	m, ok := v.(map[string]any)
	if !ok || len(names) == 0 {
		return m
	}
	return member(m[names[0]], names[1:]...)
}

// Current returns the contract of api.Document.
var Current = sync.OnceValues(func() (*Contract, error) {
	document, err := api.Document()
	if err != nil {
		return nil, err
	}
	return Read(document)
})

// Routes returns the methods and paths of the document, as patterns of a mux.
func (c *Contract) Routes() []string {
	var all []string
	for path, methods := range c.paths {
		for method := range methods {
			all = append(all, method+" "+path)
		}
	}
	return all
}

// Check returns an error unless the document has the response to a request: its status, its content type and its body.
// A request that the document does not have must fail with a problem document.
func (c *Contract) Check(r *http.Request, status int, header http.Header, body []byte) error {
	_, pattern := c.mux.Handler(r)
	method, path, _ := strings.Cut(pattern, " ")
	label := fmt.Sprintf("%s %s, status %d", r.Method, r.URL.Path, status)
	if pattern == "" {
		if status < http.StatusBadRequest && r.Method != http.MethodOptions {
			return fmt.Errorf("%s: the document has no such route", label)
		}
		return nil
	}
	response := member(map[string]any(c.paths[path][method]), "responses", strconv.Itoa(status))
	if response == nil {
		return fmt.Errorf("%s: %s %s has no such response in the document: %s", label, method, path, body)
	}
	content := member(response, "content")
	if len(content) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("%s: the document has no body: %s", label, body)
		}
		return nil
	}
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil || content[media] == nil {
		return fmt.Errorf("%s: content type %q is not in the document", label, header.Get("Content-Type"))
	}
	if !strings.HasSuffix(media, "json") || r.Method == http.MethodHead {
		return nil
	}
	pointer := strings.Join([]string{"", "paths", escape(path), strings.ToLower(method), "responses", strconv.Itoa(status), "content", escape(media), "schema"}, "/")
	if err := c.validate(pointer, body); err != nil {
		return fmt.Errorf("%s: %w: %s", label, err, body)
	}
	return nil
}

// validate holds a body against the schema at a place in the document.
func (c *Contract) validate(pointer string, body []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	schema, err := c.compiler.Compile(location + "#" + pointer)
	if err != nil {
		return fmt.Errorf("compile the schema: %w", err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("read the body: %w", err)
	}
	return schema.Validate(v)
}

// escape makes a name a token of a JSON pointer in a URL's fragment.
func escape(name string) string {
	name = strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	return strings.NewReplacer("{", "%7B", "}", "%7D").Replace(name)
}
