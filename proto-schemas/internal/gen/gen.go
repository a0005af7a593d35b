// Package gen generates the parts of the contract that follow from its Go types
// and catalogues: a bundle of JSON Schemas for each dialect, types for Python, and tables for
// people.
//
// It does not write. The command schemagen writes or checks the result of Files, and a test fails when a generated
// file is stale.
package gen

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// docsDir holds only generated files, relative to the repository's root.
const docsDir = "docs/generated"

// accountsFile is the users and permissions of the NATS servers of a fleet.
const accountsFile = "deploy/nats/accounts.conf"

// elsewhere lists files in the generated folders that tests or other commands write.
var elsewhere = []string{docsDir + "/myagent-events.md", docsDir + "/asp-messages.md", docsDir + "/team-messages.md", docsDir + "/metrics.md"} // by tests, of what they saw

// bundles generate the JSON Schemas of the dialects, by the name of their package.
var bundles = map[string]func(*comments) ([]byte, error){
	"agui": aguiBundle, "api": apiBundle, "asp": aspBundle, "event": eventBundle, "myagent": myagentBundle, "orbit": orbitBundle, "team": teamBundle,
}

// borrowed names the packages whose types the types of a package contain.
var borrowed = map[string][]string{"api": {"event", "command"}}

// Files returns the wanted content of every generated file by its path, relative to
// the repository's root. It reads the comments of the structs from the sources there.
func Files(root string) (map[string][]byte, error) {
	files := map[string][]byte{
		docsDir + "/subjects.md": subjects(),
		docsDir + "/errors.md":   faults(),
		accountsFile:             []byte(permission.Accounts(subject.DefaultPartitions)),
	}
	texts := map[string][]byte{}
	for dialect, bundle := range bundles {
		c, err := readComments(filepath.Join(root, "proto-schemas"), append(slices.Clone(borrowed[dialect]), dialect))
		if err != nil {
			return nil, err
		}
		text, err := bundle(c)
		if err != nil {
			return nil, err
		}
		files[bundlePath(dialect)], texts[dialect] = text, text
		if files[packedPath(dialect)], err = packed(text); err != nil {
			return nil, err
		}
		if dialect == "event" {
			files[docsDir+"/events.md"] = events(c)
		}
	}
	modules, err := pythonFiles(texts)
	maps.Copy(files, modules)
	return files, err
}

func bundlePath(dialect string) string { return "proto-schemas/" + dialect + "/schema.json" }

// packedPath is where package bundle embeds the bundle from.
func packedPath(dialect string) string { return "proto-schemas/bundle/packed/" + dialect + ".json.gz" }

// packed returns the text as a gzip file, the same for the same text.
func packed(text []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("pack a bundle: %w", err)
	}
	return b.Bytes(), nil
}

// Stale returns the paths whose content under root differs from files, the missing ones, and unexpected ones in the
// generated folders; sorted.
func Stale(root string, files map[string][]byte) ([]string, error) {
	var stale []string
	for path, want := range files {
		have, err := os.ReadFile(filepath.Join(root, path)) //nolint:gosec // The path is one of ours.
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read generated file: %w", err)
		}
		if err != nil || !bytes.Equal(have, want) {
			stale = append(stale, path)
		}
	}
	left, err := leftovers(root, files)
	if err != nil {
		return nil, err
	}
	stale = append(stale, left...)
	slices.Sort(stale)
	return stale, nil
}

// Write brings the stale files up to date and removes leftovers.
func Write(root string, files map[string][]byte, stale []string) error {
	for _, path := range stale {
		full := filepath.Join(root, path)
		want, ok := files[path]
		if !ok {
			if err := os.Remove(full); err != nil {
				return fmt.Errorf("remove leftover: %w", err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil { //nolint:gosec // A source folder.
			return fmt.Errorf("make folder: %w", err)
		}
		if err := os.WriteFile(full, want, 0o644); err != nil { //nolint:gosec // A source file.
			return fmt.Errorf("write generated file: %w", err)
		}
	}
	return nil
}

func leftovers(root string, files map[string][]byte) ([]string, error) {
	var out []string
	for _, dir := range []string{docsDir} {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read generated folder: %w", err)
		}
		for _, e := range entries {
			path := dir + "/" + e.Name()
			if _, ok := files[path]; !ok && !slices.Contains(elsewhere, path) && !strings.HasPrefix(e.Name(), ".") {
				out = append(out, path)
			}
		}
	}
	return out, nil
}

// Root returns the repository's root: the nearest folder from dir upwards that
// holds proto-schemas.
func Root(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for d := abs; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "proto-schemas", "go.mod")); err == nil {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("find the repository: no folder above %s holds proto-schemas", abs)
		}
	}
}
