package schema

import (
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemaURL names the schema within its own compiler.
const schemaURL = "tool:///input"

// noLoader refuses references to other documents: a tool server would choose the address to fetch.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("the schema refers to another document, %q, which is not fetched", url)
}

// strict compiles a document that follows its draft in all parts. The compiler meets hostile documents: a panic in it is
// an error of the document.
func strict(doc any, p *patterns) (s *jsonschema.Schema, err error) {
	defer func() {
		if r := recover(); r != nil {
			s, err = nil, fmt.Errorf("the schema breaks its compiler: %v", r)
		}
	}()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(p.compile)
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	return c.Compile(schemaURL)
}
