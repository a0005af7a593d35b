package model

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// ErrSpec is wrapped by errors about a specification that names no model.
var ErrSpec = errors.New("invalid model")

// Env is the part of the configuration that Open needs.
type Env struct {
	Access map[string]Access // by the providers' prefixes

	FirstTimeout time.Duration // longest wait for the first byte of an answer; 0 = 5 minutes
	IdleTimeout  time.Duration // longest silence inside an answer; 0 = 2 minutes
}

// With returns the Env with the access to a provider.
func (e Env) With(provider string, a Access) Env {
	e.Access = maps.Clone(e.Access)
	if e.Access == nil {
		e.Access = map[string]Access{}
	}
	e.Access[provider] = a
	return e
}

// Provider creates the models of one prefix.
type Provider struct {
	Prefix string // part of a specification before the colon, e.g. "openai"
	Named  bool   // a model's name follows the colon; without it the prefix is the whole specification
	// Open creates the model. It opens no connection, so it does not need the provider to run.
	Open func(name string, env Env) (Model, error)
}

// Open returns the model that spec names, such as "demo" or "openai:NAME". The caller chooses the providers:
//
//	model.Open(spec, env, demo.Provider(), openai.Provider(openai.Standard), anthropic.Provider())
//
// Each call of the model is traced as one client span. Open makes no connection. The error wraps ErrSpec if spec names none
// of the providers, and otherwise names the missing setting.
func Open(spec string, env Env, providers ...Provider) (Model, error) {
	prefix, name, named := strings.Cut(spec, ":")
	i := slices.IndexFunc(providers, func(p Provider) bool { return p.Prefix == prefix })
	if i < 0 || providers[i].Named != named || named && strings.TrimSpace(name) == "" {
		return nil, fmt.Errorf("%w %q: want %s", ErrSpec, spec, forms(providers))
	}
	m, err := providers[i].Open(name, env)
	if err != nil {
		return nil, fmt.Errorf("open model %q: %w", spec, err)
	}
	if name == "" {
		name = prefix
	}
	return &traced{Model: m, provider: prefix, name: name}, nil
}

// Any returns a model of the provider that answers only requests that name one of the provider's models. It makes no
// connection.
func Any(p Provider, env Env) (Model, error) {
	if !p.Named {
		return Open(p.Prefix, env, p)
	}
	return Open(p.Prefix+":*", env, p)
}

func forms(providers []Provider) string {
	var all []string
	for _, p := range providers {
		if p.Named {
			all = append(all, p.Prefix+":NAME")
		} else {
			all = append(all, p.Prefix)
		}
	}
	return strings.Join(all, ", ")
}
