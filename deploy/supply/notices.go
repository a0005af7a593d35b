package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/waggle-dev/waggle/deploy/supply/licence"
)

// notices returns the licences and notices of others that the programs of releases come with: those of Go, of the modules
// and of the console's packages.
func notices(ctx context.Context, modules []Module) (string, error) {
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("find Go: %w", err)
	}
	var all strings.Builder
	add := func(title, dir string) error {
		text, err := licence.Texts(dir)
		if err != nil {
			return fmt.Errorf("licence of %s: %w", title, err)
		}
		fmt.Fprintf(&all, "%s\n%s\n\n%s\n\n", title, strings.Repeat("=", len(title)), text)
		return nil
	}
	if err := add("Go", strings.TrimSpace(string(goroot))); err != nil {
		return "", err
	}
	for _, m := range modules {
		if strings.HasPrefix(m.Path, own) {
			continue
		}
		if err := add(m.Path+" "+m.Version, m.Dir); err != nil {
			return "", err
		}
	}
	if err := console(&all); err != nil {
		return "", fmt.Errorf("licences of the console: %w", err)
	}
	return all.String(), nil
}

// console writes the licences that the console's files come with.
func console(to io.Writer) (err error) {
	f, err := os.Open(filepath.Join("..", "..", "console", "dist", "LICENSES.txt.gz"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, z) //nolint:gosec // our own file
	return err
}
