package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/package-url/packageurl-go"
)

// sbom returns the SBOM of a binary: the modules of its build info, and the standard library.
// Equal arguments give equal SBOMs: it has no serial number, and its time is the commit's.
func sbom(file, version, built string, modules []Module) (*cdx.BOM, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read build info: %w", err)
	}
	content, err := os.ReadFile(filepath.Clean(file)) //nolint:gosec // The caller names the file.
	if err != nil {
		return nil, fmt.Errorf("read binary: %w", err)
	}
	sum := sha256.Sum256(content)
	program, err := library(&info.Main, version, modules)
	if err != nil {
		return nil, err
	}
	program.Type, program.Name = cdx.ComponentTypeApplication, path.Base(file)
	program.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	parts := []cdx.Component{component("std", strings.TrimPrefix(info.GoVersion, "go"), []string{"BSD-3-Clause"})}
	for _, m := range info.Deps {
		part, err := library(m, version, modules)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	slices.SortFunc(parts, func(a, b cdx.Component) int { return strings.Compare(a.Name, b.Name) })
	refs := make([]string, len(parts))
	for i, p := range parts {
		refs[i] = p.BOMRef
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: built, Component: &program}
	bom.Components = &parts
	bom.Dependencies = &[]cdx.Dependency{{Ref: program.BOMRef, Dependencies: &refs}}
	return bom, nil
}

// library returns the component of a module of the build info. Waggle's own modules have the
// version of the binary and no hash.
func library(m *debug.Module, version string, modules []Module) (cdx.Component, error) {
	i := slices.IndexFunc(modules, func(k Module) bool { return k.Path == m.Path })
	if i < 0 {
		return cdx.Component{}, fmt.Errorf("%s is in the binary and not in the packages of releases", m.Path)
	}
	if strings.HasPrefix(m.Path, own) {
		return component(m.Path, version, modules[i].Licences), nil
	}
	if m.Replace != nil || m.Version != modules[i].Version {
		return cdx.Component{}, fmt.Errorf("the binary has another version of %s than go.mod: %s", m.Path, m.Version)
	}
	// The sum of go.sum is the SHA-256 of the module's files, in base64.
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
	if err != nil || len(sum) != sha256.Size {
		return cdx.Component{}, fmt.Errorf("%s has no sum: %q", m.Path, m.Sum)
	}
	c := component(m.Path, m.Version, modules[i].Licences)
	c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	return c, nil
}

func component(module, version string, licences []string) cdx.Component {
	dir, name := path.Split(module)
	purl := packageurl.NewPackageURL(packageurl.TypeGolang, strings.TrimSuffix(dir, "/"), name, version, nil, "").ToString()
	choices := make(cdx.Licenses, len(licences))
	for i, l := range licences {
		choices[i].License = &cdx.License{ID: l}
	}
	return cdx.Component{
		BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: module, Version: version,
		Licenses: &choices, PackageURL: purl, Scope: cdx.ScopeRequired,
	}
}

func encode(to io.Writer, bom *cdx.BOM) error {
	e := cdx.NewBOMEncoder(to, cdx.BOMFileFormatJSON)
	if err := e.SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return fmt.Errorf("encode SBOM: %w", err)
	}
	return nil
}
