package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/waggle-dev/waggle/cmd/waggle/project"
	"github.com/waggle-dev/waggle/services/tools/workspace"
)

type initCmd struct {
	Dir string `arg:"" optional:"" help:"The folder; created if missing. Without one, this folder."`
}

// Run implements the command.
func (c *initCmd) Run(std streams) error {
	if err := create(std, c.Dir, project.Init, "waggle up", "docker compose up"); err != nil {
		return err
	}
	// A container engine would create missing folders as another user.
	if err := os.MkdirAll(filepath.Join(c.Dir, "data"), 0o700); err != nil {
		return fmt.Errorf("create folder: %w", err)
	}
	_, err := workspace.Open(filepath.Join(c.Dir, "workspace"))
	return err
}

type newCmd struct {
	Name     string `arg:"" optional:"" help:"Folder of the project, which must not exist or be empty. Without one, the templates are listed."`
	Template string `help:"What the project is made of." placeholder:"TEMPLATE"`
}

// Run implements the command.
func (c *newCmd) Run(std streams) error {
	if c.Name == "" && c.Template == "" {
		return listTemplates(std.out)
	}
	t, known := project.Find(c.Template)
	switch {
	case c.Name == "":
		return usageError{errors.New("name the folder of the project: waggle new NAME --template " + c.Template)}
	case c.Template == "":
		return usageError{errors.New("choose a template with --template: " + templateNames())}
	case !known:
		return usageError{fmt.Errorf("no template %q. Choose one of %s", c.Template, templateNames())}
	}
	if there, err := os.ReadDir(c.Name); err == nil && len(there) > 0 {
		return usageError{fmt.Errorf("the folder %s is not empty: choose another name", c.Name)}
	}
	return create(std, c.Name, t.Name, t.Next)
}

// create writes the files of a template and says what comes next: commands, each an alternative.
func create(std streams, dir, template string, next ...string) error {
	written, err := project.Write(dir, template)
	if there, ok := errors.AsType[*project.ExistsError](err); ok {
		return usageError{fmt.Errorf("%w: nothing was written. Choose an empty folder, or move them away", there)}
	}
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, name := range written {
		fmt.Fprintf(&b, "  %s\n", filepath.Join(dir, filepath.FromSlash(name)))
	}
	b.WriteString("\nNext:\n")
	for i, command := range next {
		if dir != "" {
			command = "cd " + word(dir) + " && " + command
		}
		if i > 0 {
			b.WriteString("or\n")
		}
		fmt.Fprintf(&b, "  %s\n", command)
	}
	_, err = io.WriteString(std.out, b.String())
	return err
}

// word returns the text as one word of a shell.
func word(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./", r)
	}) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

func templateNames() string {
	names := make([]string, len(project.Templates))
	for i, t := range project.Templates {
		names[i] = t.Name
	}
	return strings.Join(names, ", ")
}

func listTemplates(w io.Writer) error {
	var b strings.Builder
	for _, t := range project.Templates {
		fmt.Fprintf(&b, "%-17s %s\n", t.Name, t.About)
	}
	b.WriteString("\nwaggle new NAME --template TEMPLATE\n")
	_, err := io.WriteString(w, b.String())
	return err
}
