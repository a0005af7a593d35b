package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/deploy/supply/licence"
)

// own begins the paths of Waggle's modules, which the licence of the repository covers.
const own = "github.com/waggle-dev/waggle/"

// Module is a module of which the programs of releases contain packages.
type Module struct {
	Path, Version string
	Dir           string   // its sources
	Licences      []string // SPDX identifiers, sorted
}

// imported adds the modules of the programs for an operating system.
func imported(ctx context.Context, system string, found map[string]Module) error {
	c := exec.CommandContext(ctx, "go", "list", "-deps", "-tags", "grpcnotrace", "-json=Module", "./waggle", "./nats-server")
	c.Dir = "../../cmd"
	c.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS="+system, "GOARCH=amd64")
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return fmt.Errorf("list modules: %w", err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ Module *Module }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("decode package: %w", err)
		}
		if p.Module != nil {
			found[p.Module.Path] = *p.Module
		}
	}
}

// shipped returns the modules of the programs of releases, sorted by path. Their build sets the same environment
// (scripts/images.sh).
func shipped(ctx context.Context) ([]Module, error) {
	found := map[string]Module{}
	for _, system := range []string{"linux", "darwin"} {
		if err := imported(ctx, system, found); err != nil {
			return nil, err
		}
	}
	classify, err := licence.Classifier()
	if err != nil {
		return nil, err
	}
	modules := make([]Module, 0, len(found))
	for _, m := range found {
		dir := m.Dir
		if strings.HasPrefix(m.Path, own) {
			dir = filepath.Join("..", "..")
		}
		if m.Licences, err = classify(dir); err != nil {
			return nil, fmt.Errorf("licence of %s %s: %w", m.Path, m.Version, err)
		}
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b Module) int { return strings.Compare(a.Path, b.Path) })
	return modules, nil
}
