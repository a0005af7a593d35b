package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed formula.rb.tmpl
var formulaText string

// formulaCmd prints the Homebrew formula, with the checksums of the archives.
func formulaCmd(_ context.Context, c *command, args []string) error {
	dist := c.String("dist", "", "folder of the release")
	if err := c.Parse(args); err != nil {
		return err
	}
	version, err := c.version()
	if err != nil {
		return err
	}
	list, err := os.ReadFile(filepath.Join(*dist, "checksums.txt"))
	if err != nil {
		return err
	}
	sums := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(list)); lines.Scan(); {
		if sum, name, ok := strings.Cut(lines.Text(), "  "); ok {
			sums[name] = sum
		}
	}
	sum := func(system, arch string) (string, error) {
		name := fmt.Sprintf("waggle_%s_%s_%s.tar.gz", version, system, arch)
		if sums[name] == "" {
			return "", fmt.Errorf("checksums.txt lacks %s", name)
		}
		return sums[name], nil
	}
	t, err := template.New("formula").Funcs(template.FuncMap{"sum": sum}).Parse(formulaText)
	if err != nil {
		return fmt.Errorf("parse template: %w", err)
	}
	return t.Execute(c.out, version)
}
