package site

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Packages that readers install come from this repository. npm packages of others are those of the repository's lock file.
var (
	install = regexp.MustCompile(`^(pip install|npm install|go get) (.*)$`)

	ownModules = map[string]string{
		"github.com/waggle-dev/waggle/sdk/go":        "sdk/go",
		"github.com/waggle-dev/waggle/proto-schemas": "proto-schemas",
	}
	// ownPython are on the PYTHONPATH of every page.
	ownPython = map[string]bool{"waggle-sdk": true}
)

// Local returns a script in which packages come from the repository at root.
func Local(root, script string) (string, error) {
	lines := strings.Split(script, "\n")
	for n, line := range lines {
		m := install.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		var from []string
		for name := range strings.FieldsSeq(m[2]) {
			one, err := local(root, m[1], name)
			if err != nil {
				return "", err
			}
			from = append(from, one)
		}
		lines[n] = strings.Join(from, "\n")
	}
	return strings.Join(lines, "\n"), nil
}

func local(root, tool, name string) (string, error) {
	switch tool {
	case "pip install":
		if !ownPython[name] {
			return "", fmt.Errorf("pip install %s: the test has no such package", name)
		}
		return "true", nil
	case "npm install":
		if strings.HasPrefix(name, "-") {
			return "true", nil
		}
		at := filepath.Join(root, "node_modules", name)
		if !exists(at) {
			return "", fmt.Errorf("npm install %s: the test has no such package (make packages)", name)
		}
		link := fmt.Sprintf("mkdir -p node_modules/%s node_modules/.bin && ln -sfn %s node_modules/%s", filepath.Dir(name), at, name)
		if program := filepath.Join(root, "node_modules/.bin", name); exists(program) {
			link += fmt.Sprintf(" && ln -sfn %s node_modules/.bin/", program)
		}
		return link, nil
	default:
		name, _, _ = strings.Cut(name, "@")
		if ownModules[name] == "" {
			return "", fmt.Errorf("go get %s: the test has no such module", name)
		}
		var out []string
		for module, folder := range ownModules {
			out = append(out, fmt.Sprintf("go mod edit -require=%s@v0.0.0 -replace=%s=%s", module, module, filepath.Join(root, folder)))
		}
		return strings.Join(append(out, "cp "+filepath.Join(root, "sdk/go/go.sum")+" .", "go mod tidy"), "\n"), nil
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
