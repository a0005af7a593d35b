package config

import (
	"io"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Print writes the effective configuration as YAML, with secrets redacted.
func (l *Loaded) Print(w io.Writer) error {
	c := l.Config
	c.NATS.URL = RedactURLs(c.NATS.URL)
	c.Cells.Control = RedactURLs(c.Cells.Control)
	c.Providers.OpenAI.BaseURL = RedactURLs(c.Providers.OpenAI.BaseURL)
	c.Providers.Anthropic.BaseURL = RedactURLs(c.Providers.Anthropic.BaseURL)
	c.Auth.JWT.JWKSURL = RedactURLs(c.Auth.JWT.JWKSURL)
	c.Tools.Servers = slices.Clone(c.Tools.Servers)
	for i := range c.Tools.Servers {
		c.Tools.Servers[i].URL = RedactURLs(c.Tools.Servers[i].URL)
	}
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(c); err != nil {
		return err
	}
	return e.Close()
}
