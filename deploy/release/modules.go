package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// imported are the modules that programs of others import, each with a tag of its own: sdk/go/v1.2.3.
var imported = []string{"proto-schemas", "sdk/go"}

// modulesCmd writes the modules of the commit as the module proxy will serve them.
func modulesCmd(ctx context.Context, c *command, args []string) error {
	out := c.String("out", "", "folder to write")
	if err := c.Parse(args); err != nil {
		return err
	}
	version, err := c.version()
	if err != nil {
		return err
	}
	at, err := c.time()
	if err != nil {
		return err
	}
	for _, dir := range imported {
		m := module.Version{Path: path.Join("github.com/waggle-dev/waggle", dir), Version: "v" + version}
		to := filepath.Join(*out, filepath.FromSlash(m.Path), "@v")
		if err := os.MkdirAll(to, 0o755); err != nil { //nolint:gosec // a release is public
			return err
		}
		packed, requirements, err := c.pack(ctx, m, dir)
		if err != nil {
			return fmt.Errorf("pack %s: %w", m.Path, err)
		}
		info, err := json.Marshal(map[string]any{"Version": m.Version, "Time": at})
		if err != nil {
			return err
		}
		for name, content := range map[string][]byte{
			m.Version + ".zip": packed, m.Version + ".mod": requirements, m.Version + ".info": info, "list": []byte(m.Version + "\n"),
		} {
			if err := publish(filepath.Join(to, name), content); err != nil {
				return err
			}
		}
	}
	return nil
}

// pack returns the zip file and the go.mod of a module of the commit. A module without a licence of its own gets that of the
// repository, as with the go command.
func (c *command) pack(ctx context.Context, m module.Version, dir string) (packed, requirements []byte, err error) {
	sources, err := os.MkdirTemp("", "module")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(sources)) }()
	archive := exec.CommandContext(ctx, "git", "-C", c.root, "archive", "HEAD:"+dir) //nolint:gosec // dir is a constant
	var files bytes.Buffer
	archive.Stdout, archive.Stderr = &files, os.Stderr
	if err := archive.Run(); err != nil {
		return nil, nil, fmt.Errorf("read the commit: %w", err)
	}
	if err := untar(&files, sources); err != nil {
		return nil, nil, err
	}
	licence := filepath.Join(sources, "LICENSE")
	if _, err := os.Stat(licence); errors.Is(err, fs.ErrNotExist) {
		text, err := c.read("LICENSE")
		if err != nil {
			return nil, nil, err
		}
		if err := publish(licence, text); err != nil {
			return nil, nil, err
		}
	}
	var b bytes.Buffer
	if err := zip.CreateFromDir(&b, m, sources); err != nil {
		return nil, nil, err
	}
	requirements, err = os.ReadFile(filepath.Join(sources, "go.mod")) //nolint:gosec // of our own commit
	return b.Bytes(), requirements, err
}
