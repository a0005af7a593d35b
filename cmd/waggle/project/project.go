// Package project writes the files of a new project: those of "waggle init", and the templates of "waggle new". In a folder with
// such files, every command takes the settings from there.
package project

import (
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/joho/godotenv"
)

//go:embed all:templates
var embedded embed.FS

// Settings is the file with the settings of a project, and Environment the one with its secrets.
const (
	Settings    = "waggle.yaml"
	Environment = ".env"
)

// secretFile holds the secret of a template's own server.
const secretFile = "secret.txt"

// Init is the template of "waggle init": the settings of a folder.
const Init = "init"

// Template is a set of files for a new project.
type Template struct {
	Name  string
	About string // for the list of templates
	Next  string // the command to run in the folder
}

// Templates are those of "waggle new".
var Templates = []Template{
	{"chat-page", "a page with useChat of the AI SDK that survives reloads and restarts", "npm install && npm run dev"},
	{"python-agent", "an agent in Python with a tool that asks before it acts", "pip install waggle-sdk && python agent.py"},
	{"typescript-agent", "an agent in TypeScript with a tool", "npm install && npm start"},
	{"research-team", "a team with a nested team", "./run.sh"},
	{"nightly-report", "a report that cron or systemd requests every night", "./report.sh"},
	{"mcp-tools", "tools of an MCP server that asks for OAuth tokens, with a small server to try", "./run.sh"},
}

// Find returns the template with the name.
func Find(name string) (Template, bool) {
	for _, t := range Templates {
		if t.Name == name {
			return t, true
		}
	}
	return Template{}, false
}

// ExistsError names files that are there already. Nothing was written.
type ExistsError struct{ Files []string }

func (e *ExistsError) Error() string {
	return "these files exist already: " + strings.Join(e.Files, ", ")
}

// Write writes the files of a template into a folder, the working one if it has no name, which it creates if it is missing. It
// returns their names. It replaces no
// file. A file "dot.x" of a template becomes ".x". Scripts are executable, and only the owner may read secrets.
func Write(dir, template string) (written []string, err error) {
	files, err := files(template)
	if err != nil {
		return nil, err
	}
	var there []string
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(f.name))); err == nil {
			there = append(there, f.name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if len(there) > 0 {
		return nil, &ExistsError{there}
	}
	for _, f := range files {
		at := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil { //nolint:gosec // a project is shared, its secrets are not
			return written, fmt.Errorf("create folder: %w", err)
		}
		if err := os.WriteFile(at, f.text, f.mode()); err != nil {
			return written, fmt.Errorf("write file: %w", err)
		}
		written = append(written, f.name)
	}
	return written, nil
}

// file is one file of a template.
type file struct {
	name string // below the folder, with slashes
	text []byte
}

func (f file) mode() fs.FileMode {
	switch {
	case f.name == Environment, f.name == secretFile:
		return 0o600
	case strings.HasSuffix(f.name, ".sh"):
		return 0o755
	}
	return 0o644
}

// files returns the files of a template, with a new key where it needs one.
func files(template string) (out []file, err error) {
	key := "wgl_" + strings.ToLower(rand.Text())
	sum := sha256.Sum256([]byte(key))
	fill := strings.NewReplacer(
		"@KEY@", key, "@KEY_SHA256@", hex.EncodeToString(sum[:]),
		"@USER@", fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()),
	)
	root := path.Join("templates", template)
	err = fs.WalkDir(embedded, root, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := embedded.ReadFile(at)
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(at, root+"/")
		if base, dotted := strings.CutPrefix(path.Base(name), "dot."); dotted {
			name = path.Join(path.Dir(name), "."+base)
		}
		out = append(out, file{name, []byte(fill.Replace(string(text)))})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("template %s: %w", template, err)
	}
	return out, nil
}

// Enter makes the settings of the folder those of this process: the environment names its settings file, and has the variables of
// its file .env, each unless it is set already. A folder without a settings file changes nothing.
func Enter(dir string) error {
	settings := filepath.Join(dir, Settings)
	if info, err := os.Stat(settings); err != nil || !info.Mode().IsRegular() {
		return nil //nolint:nilerr // no project
	}
	if err := setenv("WAGGLE_CONFIG", settings); err != nil {
		return err
	}
	name := filepath.Join(dir, Environment)
	text, err := os.ReadFile(name) //nolint:gosec // the user's own folder
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read environment: %w", err)
	}
	vars, err := godotenv.UnmarshalBytes(text)
	if err != nil {
		return fmt.Errorf("%s is not a list of NAME=value lines: %w", name, err)
	}
	for k, v := range vars {
		if err := setenv(k, v); err != nil {
			return err
		}
	}
	return nil
}

// setenv sets a variable that is not set.
func setenv(name, value string) error {
	if _, set := os.LookupEnv(name); set {
		return nil
	}
	if err := os.Setenv(name, value); err != nil {
		return fmt.Errorf("set %s: %w", name, err)
	}
	return nil
}
