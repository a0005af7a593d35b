package config

import (
	"fmt"
	"net/url"
	"strings"
)

// redacted stands for a secret in printed configuration.
const redacted = "[redacted]"

// Secret is text that is never shown: every way of printing it gives a placeholder. Only Reveal returns the value.
type Secret string

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return string(s) }

// String implements fmt.Stringer.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// Format keeps the secret out of every formatting verb, %#v and %x included.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// MarshalYAML implements yaml.Marshaler.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// MarshalText implements encoding.TextMarshaler, for JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// RedactURLs replaces the user and password of every URL in a list separated by commas. It returns text that is not a URL
// unchanged only if the text has no "@".
func RedactURLs(list string) string {
	parts := strings.Split(list, ",")
	for i, p := range parts {
		u, err := url.Parse(strings.TrimSpace(p))
		switch {
		case err == nil && (u.User != nil || u.RawQuery != ""):
			if u.User != nil {
				u.User = url.User("redacted")
			}
			u.RawQuery = redactQuery(u.RawQuery)
			parts[i] = u.String()
		case strings.Contains(p, "@"):
			parts[i] = redacted
		}
	}
	return strings.Join(parts, ",")
}

// redactQuery keeps the names of parameters. A parameter without a value may be a secret itself.
func redactQuery(query string) string {
	if query == "" {
		return ""
	}
	parts := strings.Split(query, "&")
	for i, p := range parts {
		name, _, ok := strings.Cut(p, "=")
		if parts[i] = "redacted"; ok {
			parts[i] = name + "=redacted"
		}
	}
	return strings.Join(parts, "&")
}

// FileHoldsSecrets reports whether the file holds secrets.
func (l *Loaded) FileHoldsSecrets() bool {
	for _, s := range l.Tools.Servers {
		if len(s.Env) > 0 || len(s.Headers) > 0 || s.OAuth.ClientSecret != "" {
			return true
		}
	}
	for _, path := range []string{"providers.openai.api_key", "providers.anthropic.api_key", "session.state_keys"} {
		if l.Source(path) == FromFile {
			return true
		}
	}
	return len(l.Auth.APIKeys) > 0
}
