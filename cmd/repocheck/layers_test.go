package repocheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "github.com/waggle-dev/waggle/"

// pkg is a package in `go list`'s description.
type pkg struct {
	ImportPath, Dir, Module         string
	GoFiles                         []string
	Imports, TestImports            []string
	XTestImports, Deps, IgnoredDeps []string
}

// layer restricts the direct and indirect dependencies of the packages under a path.
type layer struct {
	path      string
	forbidden []string
	allowed   []string // exceptions to the forbidden ones
	only      []string // if set: the only packages outside the standard library
	why       string
}

var layers = []layer{
	{path: "proto-schemas", only: []string{"proto-schemas"}, why: "the contract must be readable by anybody"},
	{path: "internal", forbidden: []string{"gateway", "services", "cmd", "e2e"}, why: "the runtime knows nothing above it"},
	{path: "internal/access", only: []string{"proto-schemas"}, why: "reducers decide with it"},
	{path: "internal/eventdata", only: []string{"proto-schemas"}, why: "dialects and reducers decode with it"},
	{path: "gateway", forbidden: []string{"services", "cmd", "e2e"}, why: "gateway and services meet on the bus only"},
	{path: "services", forbidden: []string{"gateway", "cmd", "e2e"}, why: "gateway and services meet on the bus only"},
	{path: "cmd", forbidden: []string{"e2e"}, why: "tests depend on the binary, not the binary on tests"},
	{path: "sdk", forbidden: []string{"internal", "gateway", "services", "cmd", "e2e"}, why: "others import it without the server"},
	{path: "sdk/go/link", forbidden: []string{"sdk", "proto-schemas"}, allowed: []string{"sdk/go/link"}, why: "a link knows no protocol"},
	{path: "sdk/go/swarm", forbidden: []string{"sdk/go/waggle"}, why: "agents need no sessions"},
	{path: "gateway/orbit", only: []string{"proto-schemas", "internal/eventdata", "gateway/orbit", "gateway/dialect!", "gateway/narrate", "gateway/internal/strict", "gateway/internal/torn"}, why: "a codec is a pure translation"},
	{path: "gateway/myagent!", only: []string{"proto-schemas", "internal/eventdata", "gateway/myagent!", "gateway/dialect!", "gateway/narrate", "gateway/internal/strict", "gateway/internal/torn"}, why: "a codec is a pure translation"},
	{path: "gateway/asp!", only: []string{"proto-schemas", "internal/eventdata", "gateway/asp!", "gateway/dialect!", "gateway/narrate", "gateway/internal/strict", "gateway/internal/torn"}, why: "a codec is a pure translation"},
	{path: "gateway/team!", only: []string{"proto-schemas", "internal/eventdata", "gateway/team!", "gateway/dialect!", "gateway/narrate", "gateway/internal/strict", "gateway/internal/torn"}, why: "a codec is a pure translation"},
	{path: "gateway/internal/strict", only: []string{"proto-schemas", "gateway/internal/strict"}, why: "it is shared by codecs, and as pure"},
	{path: "gateway/internal/torn", only: []string{"proto-schemas", "gateway/internal/torn"}, why: "it is shared by codecs, and as pure"},
	{path: "gateway/dialect", forbidden: []string{"gateway"}, allowed: []string{"gateway/dialect", "gateway/narrate"}, why: "a dialect knows no connection"},
	{path: "gateway/answer", forbidden: []string{"gateway", "internal"}, allowed: []string{"gateway/answer"}, why: "an answer knows its fault only"},
	{path: "gateway/api", forbidden: []string{"gateway"}, allowed: []string{"gateway/api", "gateway/content", "gateway/internal/strict", "gateway/edge", "gateway/answer", "gateway/snapshot", "gateway/stream", "gateway/transport!", "gateway/dialect!"}, why: "the HTTP API knows no other protocol"},
	{path: "gateway/edge", forbidden: []string{"gateway"}, allowed: []string{"gateway/edge", "gateway/answer", "gateway/stream", "gateway/transport!", "gateway/dialect!"}, why: "a client knows no protocol"},
	{path: "gateway/snapshot", only: []string{"proto-schemas", "gateway/snapshot"}, why: "the fold that viewers see is pure"},
	{path: "gateway/arrival", forbidden: []string{"gateway"}, allowed: []string{"gateway/arrival", "gateway/admission", "gateway/answer"}, why: "arrival comes before transport and dialect"},
	{path: "gateway/admission", forbidden: []string{"gateway"}, allowed: []string{"gateway/admission"}, why: "admission comes before transport and dialect"},
	{path: "gateway/narrate", only: []string{"proto-schemas", "internal/eventdata", "gateway/narrate", "gateway/dialect!"}, why: "neutral text is a pure translation"},
	{path: "gateway/events/canonical", only: []string{"proto-schemas", "internal/eventdata", "gateway/dialect"}, why: "a dialect is a pure translation"},
	{path: "gateway/binding", forbidden: []string{"gateway"}, allowed: []string{"gateway/binding", "gateway/edge", "gateway/answer", "gateway/stream", "gateway/transport", "gateway/dialect"}, why: "a binding knows no server"},
	{path: "gateway/binding/single", forbidden: []string{"gateway/binding"}, allowed: []string{"gateway/binding!", "gateway/binding/single"}, why: "a binding knows no other binding"},
	{path: "gateway/myagent/sessions", forbidden: []string{"gateway/binding", "gateway/orbit", "gateway/asp", "gateway/team", "gateway/agui", "gateway/events", "gateway/api"}, allowed: []string{"gateway/binding!"}, why: "a protocol knows no other protocol"},
	{path: "gateway/asp/participants", forbidden: []string{"gateway/binding", "gateway/orbit", "gateway/myagent", "gateway/team", "gateway/agui", "gateway/events", "gateway/api"}, allowed: []string{"gateway/binding!"}, why: "a protocol knows no other protocol"},
	{path: "gateway/team/teams", forbidden: []string{"gateway/binding", "gateway/orbit", "gateway/myagent", "gateway/asp", "gateway/agui", "gateway/events", "gateway/api"}, allowed: []string{"gateway/binding!", "gateway/binding/single"}, why: "a protocol knows no other protocol"},
	{path: "gateway/events", forbidden: []string{"gateway"}, allowed: []string{"gateway/events", "gateway/edge", "gateway/answer", "gateway/stream", "gateway/transport", "gateway/dialect!"}, why: "a protocol knows no other protocol"},
	{path: "gateway/agui/fold", only: []string{"proto-schemas", "internal/eventdata", "gateway/agui/fold", "gateway/content", "gateway/dialect!", "gateway/narrate", "gateway/internal/jobs", "gateway/internal/strict", "gateway/internal/torn"}, why: "a fold is pure"},
	{path: "gateway/aisdk/fold", only: []string{"proto-schemas", "internal/eventdata", "gateway/content", "gateway/dialect!", "gateway/narrate", "gateway/internal/jobs", "gateway/internal/strict", "gateway/internal/torn"}, why: "a fold is pure"},
	{path: "gateway/agui", forbidden: []string{"gateway/orbit", "gateway/myagent", "gateway/asp", "gateway/team", "gateway/aisdk", "gateway/events"}, why: "a protocol knows no other protocol"},
	{path: "gateway/aisdk", forbidden: []string{"gateway/orbit", "gateway/myagent", "gateway/asp", "gateway/team", "gateway/agui", "gateway/events"}, why: "a protocol knows no other protocol"},
	{path: "gateway/stream", forbidden: []string{"gateway"}, allowed: []string{"gateway/stream", "gateway/transport", "gateway/dialect"}, why: "a stream knows its connection as a transport"},
	{path: "gateway/transport", forbidden: []string{"gateway"}, allowed: []string{"gateway/transport"}, why: "a transport knows no log and no dialect"},
	{path: "services/conversation", only: []string{"proto-schemas", "internal/access", "internal/eventdata", "services/conversation", "services/plan", "services/ledger/decision"}, why: "a reducer is pure"},
	{path: "services/assignment", only: []string{"proto-schemas", "internal/access", "internal/eventdata", "services/ledger/decision"}, why: "a reducer is pure"},
	{path: "services/teamwork", only: []string{"proto-schemas", "internal/access", "internal/eventdata", "services/ledger/decision"}, why: "a reducer is pure"},
	{path: "services/ledger", forbidden: []string{"services"}, allowed: []string{"services/ledger"}, why: "the ledger knows no service and no reducer"},
	{path: "services/ledger/decision", only: []string{"proto-schemas"}, why: "what reducers share is as pure"},
	{path: "services/model", forbidden: []string{"services"}, allowed: []string{"services/model", "services/plan"}, why: "a model knows no service"},
	{path: "services/tools/mcp", forbidden: []string{"services"}, allowed: toolsContract("mcp"), why: "providers of tools know the contract, and not each other"},
	{path: "services/tools/swarm", forbidden: []string{"services"}, allowed: toolsContract("swarm"), why: "providers of tools know the contract, and not each other"},
	{path: "services/tools/workspace", forbidden: []string{"services"}, allowed: toolsContract("workspace"), why: "providers of tools know the contract, and not each other"},
	{path: "services/tools/remote", forbidden: []string{"services"}, allowed: toolsContract("remote"), why: "callers on the bus need no provider"},
	{path: "e2e/lab/growth/simulation", only: []string{"e2e/lab/growth/simulation"}, why: "a simulation depends on its arguments only"},
	{path: "services/plan", only: []string{"proto-schemas"}, why: "lists of tasks are the reducer's, and as pure"},
}

// toolsContract returns the allowed imports of a package of the tools: itself and the contract.
func toolsContract(room string) []string {
	return []string{"services/tools/" + room, "services/tools!", "services/tools/calls", "services/tools/internal", "services/tools/schema"}
}

// jsonLibrary decodes the data of events for dialects and reducers, which reach it through one package, and writes the canonical
// form of snapshots.
const (
	jsonLibrary   = "github.com/go-json-experiment/json"
	eventData     = "internal/eventdata"
	jsonSnapshots = "gateway/snapshot"
)

// impure packages are the standard library's ways to the clock, the network and
// other goroutines; pure packages do without them.
var impure = []string{"net", "net/http", "os/exec", "log", "log/slog"}

func TestLayers(t *testing.T) {
	packages := list(t)
	require.Greater(t, len(packages), 20)
	for _, l := range layers {
		found := 0
		for _, p := range packages {
			if under(p.ImportPath, l.path) {
				found++
				l.check(t, p)
			}
		}
		require.Positive(t, found, "no package under %s", l.path)
	}
}

func (l layer) check(t *testing.T, p pkg) {
	for _, dep := range p.Deps {
		for _, f := range l.forbidden {
			if under(dep, f) && !underAny(dep, l.allowed) {
				t.Errorf("%s depends on %s: %s", p.ImportPath, dep, l.why)
			}
		}
		if l.only != nil && !l.allows(dep) && !readsData(p, dep) {
			t.Errorf("%s depends on %s: %s", p.ImportPath, dep, l.why)
		}
	}
	if l.only == nil || strings.Contains(p.ImportPath, "/cmd/") {
		return
	}
	for _, imp := range p.Imports {
		if strings.HasPrefix(imp, jsonLibrary) && !underAny(p.ImportPath, []string{eventData + "!", jsonSnapshots}) {
			t.Errorf("%s imports %s: only %s and %s do", p.ImportPath, imp, eventData, jsonSnapshots)
		}
		for _, bad := range impure {
			if imp == bad {
				t.Errorf("%s imports %s: %s", p.ImportPath, imp, l.why)
			}
		}
	}
}

// readsData reports whether a package depends on the JSON library to decode the data of events, or to write snapshots.
func readsData(p pkg, dep string) bool {
	return strings.HasPrefix(dep, jsonLibrary) && (underAny(p.ImportPath, []string{eventData, jsonSnapshots}) || slices.Contains(p.Deps, root+eventData))
}

func (l layer) allows(dep string) bool {
	if first, _, _ := strings.Cut(dep, "/"); !strings.Contains(first, ".") {
		return true // the standard library
	}
	return underAny(dep, l.only)
}

func underAny(importPath string, paths []string) bool {
	return slices.ContainsFunc(paths, func(path string) bool { return under(importPath, path) })
}

// under reports whether the package is at the path or, unless the path ends with "!", below it.
func under(importPath, path string) bool {
	if exact, ok := strings.CutSuffix(path, "!"); ok {
		return importPath == root+exact
	}
	return importPath == root+path || strings.HasPrefix(importPath, root+path+"/")
}

// list returns every package of the workspace with the dependencies of its code, without its tests.
func list(t *testing.T) []pkg {
	t.Helper()
	all, err := packages()
	require.NoError(t, err)
	return all
}

// packages lists them once for all tests.
var packages = sync.OnceValues(func() (out []pkg, err error) {
	dirs, err := moduleFolders()
	if err != nil {
		return nil, err
	}
	args := []string{"list", "-deps=false", "-json=ImportPath,Dir,GoFiles,Imports,TestImports,XTestImports,Deps"}
	for _, dir := range dirs {
		args = append(args, dir+"/...")
	}
	b, err := exec.CommandContext(context.Background(), "go", args...).Output()
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	for {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
})

// modules returns the folder of every module of the workspace.
func modules(t *testing.T) []string {
	t.Helper()
	dirs, err := moduleFolders()
	require.NoError(t, err)
	return dirs
}

// moduleFolders returns the folders of the workspace's modules.
var moduleFolders = sync.OnceValues(func() ([]string, error) {
	noteTree()
	b, err := exec.CommandContext(context.Background(), "go", "list", "-m", "-f", "{{.Dir}}").Output()
	return strings.Fields(string(b)), err
})

// top returns the repository's root.
func top(t *testing.T) string {
	t.Helper()
	noteTree()
	dir, err := filepath.Abs("../..")
	require.NoError(t, err)
	return dir
}

// noteTree reads the Makefile's digest of the tree, so that the cache of test results forgets them when the tree changes.
func noteTree() { _ = os.Getenv("WAGGLE_TREE") }
