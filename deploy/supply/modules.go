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

// Module is a module of which the programs of the images contain packages.
type Module struct {
	Path, Version string
	Dir           string   // its sources
	Licences      []string // SPDX identifiers, sorted
}

// shipped returns the modules of the images' programs, sorted by path. The build of the
// images sets the same environment (scripts/images.sh).
func shipped(ctx context.Context) ([]Module, error) {
	c := exec.CommandContext(ctx, "go", "list", "-deps", "-tags", "grpcnotrace", "-json=Module", "./waggle", "./nats-server")
	c.Dir = "../../cmd"
	c.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("list modules: %w", err)
	}
	found := map[string]Module{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ Module *Module }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("decode package: %w", err)
		}
		if p.Module != nil {
			found[p.Module.Path] = *p.Module
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
