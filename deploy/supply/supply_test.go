package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/stretchr/testify/require"
)

// build returns the path of a program, built like those of the images but for cgo: the modules
// are the same, and the build cache of other builds serves.
func build(t *testing.T, name string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	c := exec.CommandContext(t.Context(), "go", "build", "-tags", "grpcnotrace", "-trimpath", "-buildvcs=false", "-o", file, "./"+name)
	c.Dir = "../../cmd"
	c.Env = append(os.Environ(), "GOWORK=off")
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
	return file
}

// TestSBOMListsTheModulesOfTheBinary reads SBOM and page beside the build info of the programs.
func TestSBOMListsTheModulesOfTheBinary(t *testing.T) {
	modules, err := shipped(t.Context())
	require.NoError(t, err)
	built := map[string]string{} // module: version
	for _, name := range []string{"waggle", "nats-server"} {
		file := build(t, name)
		info, err := buildinfo.ReadFile(file)
		require.NoError(t, err)
		compare(t, file, info, modules)
		for _, m := range append(info.Deps, &info.Main) {
			built[m.Path] = m.Version
		}
	}

	listed := map[string]string{}
	for _, m := range modules {
		listed[m.Path] = m.Version
		require.NotEmpty(t, m.Licences, m.Path)
	}
	for path := range built {
		if strings.HasPrefix(path, own) {
			built[path] = listed[path]
		}
	}
	require.Equal(t, built, listed)

	text, err := page(modules)
	require.NoError(t, err)
	current, err := os.ReadFile("../../docs/MODULES.md")
	require.NoError(t, err)
	require.Equal(t, text, string(current), "run make generate")
	rows := strings.Split(text, "\n## ")
	for path, version := range built {
		require.Equal(t, !strings.HasPrefix(path, own), strings.Contains(rows[0], "| `"+path+"` | "+version+" |"), path)
		require.Equal(t, !strings.HasPrefix(path, own) && strings.Contains(version, "-"), strings.Contains(rows[1], "| `"+path+"` |"), path)
	}
}

func compare(t *testing.T, file string, info *debug.BuildInfo, modules []Module) {
	t.Helper()
	write := func() []byte {
		bom, err := sbom(file, "v1.2.3", "2026-01-02T03:04:05Z", modules)
		require.NoError(t, err)
		var b bytes.Buffer
		require.NoError(t, encode(&b, bom))
		return b.Bytes()
	}
	document := write()
	require.Equal(t, string(document), string(write()), "it is reproducible")
	require.NotContains(t, string(document), "serialNumber")

	bom := new(cdx.BOM)
	require.NoError(t, cdx.NewBOMDecoder(bytes.NewReader(document), cdx.BOMFileFormatJSON).Decode(bom))
	require.Equal(t, cdx.SpecVersion1_6, bom.SpecVersion)
	require.Equal(t, "2026-01-02T03:04:05Z", bom.Metadata.Timestamp)
	require.Equal(t, filepath.Base(file), bom.Metadata.Component.Name)
	require.Equal(t, "v1.2.3", bom.Metadata.Component.Version)

	components := map[string]cdx.Component{}
	for _, c := range *bom.Components {
		require.NotContains(t, components, c.Name)
		require.NotEmpty(t, *c.Licenses, c.Name)
		require.NotEmpty(t, (*c.Licenses)[0].License.ID, c.Name)
		require.Equal(t, "pkg:golang/"+c.Name+"@"+c.Version, c.PackageURL)
		components[c.Name] = c
	}
	require.Equal(t, strings.TrimPrefix(info.GoVersion, "go"), components["std"].Version)
	want := []string{"std"}
	for _, m := range info.Deps {
		want = append(want, m.Path)
		c := components[m.Path]
		if strings.HasPrefix(m.Path, own) {
			require.Equal(t, "v1.2.3", c.Version)
			continue
		}
		require.Equal(t, m.Version, c.Version, m.Path)
		sum, err := hex.DecodeString((*c.Hashes)[0].Value)
		require.NoError(t, err)
		require.Equal(t, m.Sum, "h1:"+base64.StdEncoding.EncodeToString(sum), m.Path)
	}
	require.ElementsMatch(t, want, slices.Collect(maps.Keys(components)))
	require.Len(t, *(*bom.Dependencies)[0].Dependencies, len(want))
}

func TestVersionsWithoutAReleaseNeedAReason(t *testing.T) {
	var modules []Module
	for path := range reasons {
		modules = append(modules, Module{Path: path, Version: "v0.0.0-20260101000000-000000000000"})
	}
	_, err := page(modules)
	require.NoError(t, err)
	_, err = page(append(modules, Module{Path: "example.com/new", Version: "v1.0.0-rc.1"}))
	require.ErrorContains(t, err, "example.com/new v1.0.0-rc.1 is not a release")
	_, err = page(modules[1:])
	require.ErrorContains(t, err, "need no reason")
}
