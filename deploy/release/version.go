package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var heading = regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?)( - .*)?\n`)

// places are where a version of the release stands: the second group of the expression.
var places = []struct {
	glob string
	text *regexp.Regexp
}{
	{"sdk/typescript/*/package.json", regexp.MustCompile(`(?m)(^  "version": ")([^"]+)(")`)},
	{"sdk/typescript/*/package.json", regexp.MustCompile(`("@waggle-dev/[a-z-]+": ")([^"]+)(")`)},
	{"sdk/python/pyproject.toml", regexp.MustCompile(`(?m)(^version = ")([^"]+)(")`)},
	{"deploy/helm/waggle/Chart.yaml", regexp.MustCompile(`(?m)(^(?:appV|v)ersion: )(\S+)($)`)},
	// Programs of others import these two modules; "replace" of a go.mod has no effect on them.
	{"*/go.mod", required},
	{"*/*/go.mod", required},
}

var required = regexp.MustCompile(`(?m)(^\s*(?:require )?github\.com/waggle-dev/waggle/(?:proto-schemas|sdk/go) v)(\S+)($| )`)

// latest returns the version of the changelog's first section, the rest of its heading, and its text.
func latest(changelog []byte) (version, state, text string, err error) {
	at := heading.FindSubmatchIndex(changelog)
	if at == nil {
		return "", "", "", errors.New("CHANGELOG.md has no version")
	}
	rest := changelog[at[1]:]
	if next := regexp.MustCompile(`(?m)^## `).FindIndex(rest); next != nil {
		rest = rest[:next[0]]
	}
	if at[4] >= 0 {
		state = strings.TrimPrefix(string(changelog[at[4]:at[5]]), " - ")
	}
	return string(changelog[at[2]:at[3]]), state, strings.TrimSpace(string(rest)) + "\n", nil
}

// versionCmd prints the version of the release, which every package has.
func versionCmd(_ context.Context, c *command, args []string) error {
	if err := c.Parse(args); err != nil {
		return err
	}
	version, err := c.version()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.out, version)
	return err
}

func (c *command) version() (string, error) {
	changelog, err := c.read("CHANGELOG.md")
	if err != nil {
		return "", err
	}
	version, _, _, err := latest(changelog)
	if err != nil {
		return "", err
	}
	var wrong []error
	err = c.eachPlace(func(file string, text *regexp.Regexp, content []byte) error {
		for _, m := range text.FindAllSubmatch(content, -1) {
			if string(m[2]) != version {
				wrong = append(wrong, fmt.Errorf("%s has version %s, and CHANGELOG.md %s", file, m[2], version))
			}
		}
		return nil
	})
	return version, errors.Join(append(wrong, err)...)
}

// setCmd writes the version into every package.
func setCmd(_ context.Context, c *command, args []string) error {
	if err := c.Parse(args); err != nil {
		return err
	}
	version := c.Arg(0)
	if !heading.MatchString("## " + version + "\n") {
		return fmt.Errorf("%q is not a version such as 1.2.3", version)
	}
	return c.eachPlace(func(file string, text *regexp.Regexp, content []byte) error {
		changed := text.ReplaceAll(content, []byte("${1}"+version+"${3}"))
		if bytes.Equal(changed, content) {
			return nil
		}
		return publish(c.path(file), changed)
	})
}

// eachPlace calls do for every file with a version.
func (c *command) eachPlace(do func(file string, text *regexp.Regexp, content []byte) error) error {
	for _, p := range places {
		files, err := filepath.Glob(c.path(filepath.FromSlash(p.glob)))
		if err != nil {
			return err
		}
		for _, file := range files {
			content, err := os.ReadFile(filepath.Clean(file))
			if err != nil {
				return err
			}
			name, err := filepath.Rel(c.root, file)
			if err != nil {
				return err
			}
			if err := do(name, p.text, content); err != nil {
				return err
			}
		}
	}
	return nil
}

// notesCmd prints the changelog of the version.
func notesCmd(_ context.Context, c *command, args []string) error {
	released := c.Bool("released", false, "fail if the changelog calls the version unreleased")
	if err := c.Parse(args); err != nil {
		return err
	}
	changelog, err := c.read("CHANGELOG.md")
	if err != nil {
		return err
	}
	version, state, text, err := latest(changelog)
	if err != nil {
		return err
	}
	if *released && strings.Contains(state, "unreleased") {
		return fmt.Errorf("CHANGELOG.md calls %s unreleased: give it a date", version)
	}
	_, err = fmt.Fprint(c.out, text)
	return err
}
