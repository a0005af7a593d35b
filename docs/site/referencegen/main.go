// Command referencegen writes the pages of docs/site/reference from the documents that the code generates: the OpenAPI document, the
// configuration, events, subjects, errors, metrics, and the pages of the protocols.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", "../..", "folder of the repository")
	flag.Parse()
	if err := run(*root); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "referencegen:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	c := copier{root: root}
	for _, p := range copies {
		if err := c.write(p); err != nil {
			return fmt.Errorf("%s: %w", p.from, err)
		}
	}
	return writeAPI(root)
}

// mark is the first line of a generated page.
const mark = "<!-- Generated from %s by \"make generate\". Do not edit. -->\n\n"

// write writes a page of the reference.
func write(root, name, from, text string) error {
	path := filepath.Join(root, "docs/site/reference", filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // pages are for everyone
		return err
	}
	return os.WriteFile(path, []byte(fmt.Sprintf(mark, from)+text), 0o644) //nolint:gosec // pages are for everyone
}
