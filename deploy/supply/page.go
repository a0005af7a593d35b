package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/waggle-dev/waggle/deploy/supply/licence"
)

const head = `<!-- Generated from the modules of the binaries by "make generate". Do not edit. -->

# Modules

The programs of releases, ` + "`waggle` and `nats-server`" + `, contain packages of these modules on Linux or macOS. Only permissive licences ship:
%s; "make generate" fails for any other and for a licence that it does not recognise. Waggle's own modules
have the licence of the repository ([LICENSE](../LICENSE)). ` + "`make sbom`" + ` writes the same list with hashes.

| Module | Version | Licences |
|---|---|---|
`

const unreleasedHead = `
## Versions without a release

These modules ship in a version that is a pre-release or a commit.

| Module | Version | Reason |
|---|---|---|
`

// reasons says why a module ships in a version that is not a release.
var reasons = map[string]string{
	"github.com/antithesishq/antithesis-sdk-go": "`nats-server` imports its assertions; this version of a release is the one whose functions do nothing.",
	"github.com/charmbracelet/ultraviolet":      "`bubbletea` and `lipgloss` draw with it; it has no release.",
	"github.com/go-json-experiment/json":        "Our strict scanner, the event log and the dialects use it: `encoding/json` accepts duplicate names and takes three times as long; this commit is older than its first release.",
	"github.com/munnerz/goautoneg":              "`prometheus/common` negotiates the format of metrics with it; it has no release.",
	"google.golang.org/genproto/googleapis/api": "`grpc-gateway`, which the OTLP exporters use, imports it; Google publishes it by commit only.",
	"google.golang.org/genproto/googleapis/rpc": "gRPC, which the OTLP exporters use, imports it; Google publishes it by commit only.",
}

// page returns the page of the modules. It refuses a version without a release that has no
// reason, and a reason that no module needs.
func page(modules []Module) (string, error) {
	var all, unreleased strings.Builder
	unused := maps.Clone(reasons)
	for _, m := range modules {
		if strings.HasPrefix(m.Path, own) {
			continue
		}
		fmt.Fprintf(&all, "| `%s` | %s | %s |\n", m.Path, m.Version, strings.Join(m.Licences, ", "))
		if semver.Prerelease(m.Version) == "" {
			continue
		}
		why, ok := reasons[m.Path]
		if !ok {
			return "", fmt.Errorf("%s %s is not a release: give a reason in deploy/supply/page.go", m.Path, m.Version)
		}
		delete(unused, m.Path)
		fmt.Fprintf(&unreleased, "| `%s` | %s | %s |\n", m.Path, m.Version, why)
	}
	if len(unused) > 0 {
		return "", fmt.Errorf("%q need no reason: remove it in deploy/supply/page.go", slices.Sorted(maps.Keys(unused)))
	}
	return fmt.Sprintf(head, strings.Join(licence.Permissive, ", ")) + all.String() + unreleasedHead + unreleased.String(), nil
}
