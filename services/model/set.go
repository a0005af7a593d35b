package model

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Serves reports whether a process with the standard model and the providers can answer requests for a model: a model of one
// of the providers, the standard model itself, or another model of its provider.
func Serves(standard string, providers []string, spec string) bool {
	provider, named := Provided(spec)
	own, _, _ := strings.Cut(standard, ":")
	switch {
	case !named, provider == own:
		return true
	case spec == provider && provider != bare:
		return false // names no model
	}
	return slices.Contains(providers, provider)
}

// Set combines the models of several providers: the standard one, and others that requests may name.
type Set struct {
	Model
	others map[string]Model // by provider
}

// NewSet returns a set with the standard model alone, under its name.
func NewSet(standard Model) *Set { return &Set{Model: standard, others: map[string]Model{}} }

// Add adds the model of another provider. Call it before the set is used.
func (s *Set) Add(m Model) { s.others[prefixOf(m)] = m }

// Providers returns the providers that requests to m may name, sorted.
func Providers(m Model) []string {
	out := []string{prefixOf(m)}
	if s, ok := m.(*Set); ok {
		for p := range s.others {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Generate implements Model: the provider that the request names answers, otherwise the standard model.
func (s *Set) Generate(ctx context.Context, req Request, to Listener) (Reply, error) {
	provider, named := Provided(req.Model)
	switch {
	case !Serves(s.Name(), Providers(s), req.Model):
		return Reply{}, Unserved(req.Model)
	case !named, provider == prefixOf(s.Model):
		return s.Model.Generate(ctx, req, to)
	}
	return s.others[provider].Generate(ctx, req, to)
}

// Unserved returns the fault of a request for a model that no process here can ask.
func Unserved(spec string) error {
	return fault.Newf(fault.ModelNotFound, "No running worker offers the model %q. Configure its provider, or choose another model.", spec)
}

// Barred returns the fault of a request of a tenant that may not use the model.
func Barred(spec string) *fault.Fault {
	return fault.Newf(fault.Forbidden, "Your tenant may not use the model %q. Choose another model, or ask the operator.", spec)
}

// Close implements Model.
func (s *Set) Close() error {
	errs := []error{s.Model.Close()}
	for _, m := range s.others {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}
