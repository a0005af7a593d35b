package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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
	root, err := filepath.Abs(c.root)
	if err != nil {
		return err
	}
	for _, dir := range imported {
		m := module.Version{Path: path.Join("github.com/waggle-dev/waggle", dir), Version: "v" + version}
		to := filepath.Join(*out, filepath.FromSlash(m.Path), "@v")
		if err := os.MkdirAll(to, 0o755); err != nil { //nolint:gosec // a release is public
			return err
		}
		var packed bytes.Buffer
		if err := zip.CreateFromVCS(&packed, m, root, "HEAD", dir); err != nil {
			return fmt.Errorf("pack %s: %w", m.Path, err)
		}
		show := exec.CommandContext(ctx, "git", "show", "HEAD:"+dir+"/go.mod") //nolint:gosec // dir is a constant
		show.Dir = root
		requirements, err := show.Output()
		if err != nil {
			return fmt.Errorf("read go.mod of %s: %w", dir, err)
		}
		info, err := json.Marshal(map[string]any{"Version": m.Version, "Time": at})
		if err != nil {
			return err
		}
		for name, content := range map[string][]byte{
			m.Version + ".zip": packed.Bytes(), m.Version + ".mod": requirements, m.Version + ".info": info, "list": []byte(m.Version + "\n"),
		} {
			if err := publish(filepath.Join(to, name), content); err != nil {
				return err
			}
		}
	}
	return nil
}
