// Package providers lists the providers that Waggle knows.
package providers

import (
	"net/http"
	"slices"

	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/anthropic"
	"github.com/waggle-dev/waggle/services/model/demo"
	"github.com/waggle-dev/waggle/services/model/openai"
)

// All returns the providers.
func All() []model.Provider {
	out := []model.Provider{demo.Provider(), openai.Provider(openai.Standard), anthropic.Provider()}
	for _, p := range openai.Presets()[1:] {
		out = append(out, openai.Provider(p))
	}
	return out
}

// Open returns the model that spec names, and the models of all other providers to which env gives access, for requests that
// name one. It opens no connection.
func Open(spec string, env model.Env) (model.Model, error) {
	standard, err := model.Open(spec, env, All()...)
	if err != nil {
		return nil, err
	}
	set := model.NewSet(standard)
	for _, p := range All() {
		if _, given := env.Access[p.Prefix]; p.Named && !given || slices.Contains(model.Providers(set), p.Prefix) {
			continue
		}
		if m, err := model.Any(p, env); err == nil { // an error means that env gives no access
			set.Add(m)
		}
	}
	return set, nil
}

// Usable returns why spec names no model that env gives access to; nil if it does.
func Usable(spec string, env model.Env) error {
	m, err := model.Open(spec, env, All()...)
	if err != nil {
		return err
	}
	return m.Close()
}

// Listing is where a provider lists its models.
type Listing struct {
	Env    string // beginning of the names of the provider's environment variables
	URL    string
	Header http.Header
}

// ListingOf returns where the provider of a specification lists its models; ok is false for one that does not.
func ListingOf(spec string, env model.Env) (l Listing, ok bool, err error) {
	prefix, _ := model.Provided(spec)
	if prefix == "anthropic" {
		l.Env = "ANTHROPIC"
		l.URL, l.Header, err = anthropic.ModelsURL(env.Access[prefix])
		return l, true, err
	}
	for _, p := range openai.Presets() {
		if p.Prefix == prefix {
			l.Env = p.Env
			l.URL, l.Header, err = p.ModelsURL(env.Access[prefix])
			return l, true, err
		}
	}
	return l, false, nil
}
