// Command schemagen writes the generated parts of the contract: JSON Schemas of the
// canonical events, and the tables of docs/generated.
//
//	go run ./proto-schemas/cmd/schemagen           write what is stale
//	go run ./proto-schemas/cmd/schemagen -check    exit 1 if anything is stale
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/waggle-dev/waggle/proto-schemas/internal/gen"
)

func main() {
	check := flag.Bool("check", false, "write nothing; exit 1 if a generated file is stale")
	dir := flag.String("C", ".", "a folder inside the repository")
	flag.Parse()
	if err := run(*dir, *check); err != nil {
		fmt.Fprintln(os.Stderr, "schemagen:", err)
		os.Exit(1)
	}
}

func run(dir string, check bool) error {
	root, err := gen.Root(dir)
	if err != nil {
		return err
	}
	files, err := gen.Files(root)
	if err != nil {
		return err
	}
	stale, err := gen.Stale(root, files)
	if err != nil {
		return err
	}
	if check && len(stale) > 0 {
		return fmt.Errorf("stale: %q; run make generate", stale)
	}
	return gen.Write(root, files, stale)
}
