package sdk_test

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/waggle-dev/waggle/proto-schemas/sdk"
)

//go:generate go test -count=1 -run ^TestThePageIsCurrent$ -update .

var update = flag.Bool("update", false, "write docs/SDKS.md")

func TestThePageIsCurrent(t *testing.T) {
	groups, err := sdk.Load()
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := sdk.LoadTasks()
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	for language, path := range sdk.Sources() {
		text, err := os.ReadFile("../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		sources[language] = string(text)
	}
	page, err := sdk.Page(groups, tasks, sources)
	if err != nil {
		t.Fatal(err)
	}
	const path = "../../docs/SDKS.md"
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	current, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(current) != page {
		t.Error("docs/SDKS.md is not current: make generate")
	}
}

// TestRoutesAreThoseOfTheAPI: the server of the cases knows an operation by the path that the OpenAPI document gives it.
func TestRoutesAreThoseOfTheAPI(t *testing.T) {
	raw, err := os.ReadFile("../../docs/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for path, methods := range doc.Paths {
		for method, text := range methods {
			var o struct{ OperationID string }
			if json.Unmarshal(text, &o) == nil && o.OperationID != "" {
				known[o.OperationID] = strings.ToUpper(method) + " " + path
			}
		}
	}
	for operation, pattern := range sdk.Routes {
		if pattern != known[operation] {
			t.Errorf("%s is %s, and not %s", operation, known[operation], pattern)
		}
	}
}

// TestEveryOperationHasACase: an operation that no program does is not a promise.
func TestEveryOperationHasACase(t *testing.T) {
	groups, err := sdk.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range sdk.Operations {
		done := slices.ContainsFunc(groups, func(g sdk.Group) bool {
			return slices.ContainsFunc(g.Cases, func(c sdk.Case) bool {
				return slices.ContainsFunc(c.Program, func(s sdk.Step) bool { return s.Do == o.Name })
			})
		})
		if !done {
			t.Errorf("no case does %s", o.Name)
		}
	}
}
