package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Source is the kind of input that set a value.
type Source string

// The sources, weakest first.
const (
	FromDefault Source = "default"
	FromFile    Source = "file"
	FromEnv     Source = "environment"
	FromFlag    Source = "flag"
)

// Input is what Load reads.
type Input struct {
	File  string                      // a YAML file or a folder of YAML files; empty = no file
	Env   func(string) (string, bool) // such as os.LookupEnv
	Flags map[string]string           // text of each flag that was given, by the setting's path
}

// Loaded is a configuration with the source of each setting.
type Loaded struct {
	Config
	File    string
	sources map[string]Source
	in      Input
	stamp   Stamp
}

// Source returns the source of the setting at the path.
func (l *Loaded) Source(path string) Source {
	if s, ok := l.sources[path]; ok {
		return s
	}
	return FromDefault
}

// Load merges all sources, flags over environment over file over defaults. It refuses unknown keys of the file, naming their
// line, and does not validate values: Validate does, once the roles are known.
func Load(in Input) (*Loaded, error) {
	l := &Loaded{Config: Default(), File: in.File, sources: map[string]Source{}, in: in}
	names, err := files(in.File)
	if err != nil {
		return nil, err
	}
	if l.stamp, err = stampOf(names); err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := l.readFile(name); err != nil {
			return nil, err
		}
	}
	for _, f := range Fields(&l.Config) {
		if f.Env != "" && in.Env != nil {
			if text, ok := in.Env(f.Env); ok && text != "" {
				if err := f.set(text); err != nil {
					return nil, fmt.Errorf("%s (environment %s): %w", f.Path, f.Env, err)
				}
				l.sources[f.Path] = FromEnv
			}
		}
		if text, ok := in.Flags[f.Path]; ok {
			if err := f.set(text); err != nil {
				return nil, fmt.Errorf("%s (flag): %w", f.Path, err)
			}
			l.sources[f.Path] = FromFlag
		}
	}
	l.Quota.explicit()
	return l, nil
}

// files returns the files that a name stands for: the file itself, or a folder's files that end with ".yaml", ordered by
// name. Later files win; they replace lists and do not extend them.
func files(name string) ([]string, error) {
	if name == "" {
		return nil, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("configuration file: %w", err)
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, fmt.Errorf("configuration folder: %w", err)
	}
	var out []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".yaml") {
			out = append(out, filepath.Join(name, e.Name()))
		}
	}
	return out, nil
}

func (l *Loaded) readFile(name string) error {
	text, err := os.ReadFile(filepath.Clean(name))
	if err != nil {
		return fmt.Errorf("configuration file: %w", err)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&l.Config); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("configuration file %s: %w", name, readable(err))
	}
	if err := d.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return fmt.Errorf("configuration file %s: more than one YAML document", name)
	}
	var present map[string]any
	if err := yaml.Unmarshal(text, &present); err != nil {
		return fmt.Errorf("configuration file %s: %w", name, err)
	}
	for _, f := range Fields(&l.Config) {
		if path, _, _ := strings.Cut(f.Path, "[]"); has(present, strings.Split(path, ".")) {
			l.sources[path] = FromFile
		}
	}
	return nil
}

func has(m map[string]any, path []string) bool {
	v, ok := m[path[0]]
	if !ok || len(path) == 1 {
		return ok
	}
	sub, ok := v.(map[string]any)
	return ok && has(sub, path[1:])
}

var unknownField = regexp.MustCompile(`field (\S+) not found in type config\.(\w+)`)

// readable rewrites YAML's messages about Go types in terms of the file.
func readable(err error) error {
	te, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		return err
	}
	lines := make([]string, len(te.Errors))
	for i, e := range te.Errors {
		e = strings.ReplaceAll(e, "into time.Duration", "into a duration; write a unit, as in 30s")
		lines[i] = unknownField.ReplaceAllStringFunc(e, func(s string) string {
			m := unknownField.FindStringSubmatch(s)
			return fmt.Sprintf("unknown key %q%s", m[1], within(m[2]))
		})
	}
	return errors.New(strings.Join(lines, "; "))
}

// within returns the section of the given type.
func within(typeName string) string {
	if at := find(reflect.TypeFor[Config](), typeName, ""); at != "" {
		return " in " + at
	}
	return ""
}

func find(t reflect.Type, typeName, prefix string) string {
	for i := range t.NumField() {
		sf := t.Field(i)
		name, _, _ := strings.Cut(sf.Tag.Get("yaml"), ",")
		sub := sf.Type
		if sub.Kind() == reflect.Slice {
			sub, name = sub.Elem(), name+"[]"
		}
		if !isSection(sub) {
			continue
		}
		if sub.Name() == typeName {
			return prefix + name
		}
		if at := find(sub, typeName, prefix+name+"."); at != "" {
			return at
		}
	}
	return ""
}
