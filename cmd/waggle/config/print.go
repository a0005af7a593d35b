package config

import (
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Print writes the effective configuration as YAML, with secrets redacted.
func (l *Loaded) Print(w io.Writer) error {
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(l.redacted()); err != nil {
		return err
	}
	return e.Close()
}

// Setting is a setting in force, for people.
type Setting struct {
	Path, Value string // a secret is redacted; of a list of sections or a table the number of entries
	Source      Source
}

// Settings returns every setting with its source, secrets redacted. It names no entry of lists of sections and of tables:
// these are for single tenants, keys and tools.
func (l *Loaded) Settings() []Setting {
	c := l.redacted()
	var out []Setting
	last := ""
	for _, f := range Fields(&c) {
		path, _, isList := strings.Cut(f.Path, "[]")
		if path == last {
			continue
		}
		last = path
		s := Setting{Path: path, Value: f.Value(), Source: l.Source(path)}
		switch {
		case isList:
			s.Value = entries(sectionOf(reflect.ValueOf(c), strings.Split(path, ".")).Len())
		case f.value.Kind() == reflect.Map:
			s.Value = entries(f.value.Len())
		}
		out = append(out, s)
	}
	return out
}

func entries(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 entry"
	}
	return strconv.Itoa(n) + " entries"
}

// sectionOf returns the member of a section that the path names.
func sectionOf(v reflect.Value, path []string) reflect.Value {
	for i := range v.Type().NumField() {
		if name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ","); name != path[0] {
			continue
		}
		if len(path) == 1 {
			return v.Field(i)
		}
		return sectionOf(v.Field(i), path[1:])
	}
	return reflect.Value{}
}

// redacted returns the configuration without the secrets in its texts.
func (l *Loaded) redacted() Config {
	c := l.Config
	c.NATS.URL = RedactURLs(c.NATS.URL)
	c.Cells.Control = RedactURLs(c.Cells.Control)
	c.Providers.redact()
	c.Auth.JWT.JWKSURL = RedactURLs(c.Auth.JWT.JWKSURL)
	c.Tools.Servers = slices.Clone(c.Tools.Servers)
	for i := range c.Tools.Servers {
		c.Tools.Servers[i].URL = RedactURLs(c.Tools.Servers[i].URL)
		c.Tools.Servers[i].OAuth.TokenURL = RedactURLs(c.Tools.Servers[i].OAuth.TokenURL)
	}
	return c
}
