package schema

import (
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	printer "golang.org/x/text/message"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/tools/internal/bound"
)

const (
	// maxReasons bounds the list of one refusal; a model corrects the first ones.
	maxReasons = 5
	// maxReason bounds one reason, which may quote a value.
	maxReason = 300
)

var english = printer.NewPrinter(language.English)

// misfit turns a validation error into one fault: each reason with its place.
func misfit(ve *jsonschema.ValidationError, code fault.Code, what string) *fault.Fault {
	var reasons []string
	first := ""
	var visit func(*jsonschema.ValidationError)
	visit = func(e *jsonschema.ValidationError) {
		for _, c := range e.Causes {
			if len(reasons) < maxReasons {
				visit(c)
			}
		}
		if len(e.Causes) > 0 {
			return
		}
		at := pointer(e.InstanceLocation)
		if len(reasons) == 0 {
			first = at
		}
		reasons = append(reasons, "at "+quoted(at)+": "+because(e))
	}
	visit(ve)
	return fault.Newf(code, "%s: %s.", what, strings.Join(reasons, "; ")).At(first)
}

// because returns the reason of one misfit.
func because(e *jsonschema.ValidationError) string {
	return bound.Shorten(e.ErrorKind.LocalizedString(english), maxReason)
}

func quoted(pointer string) string {
	if pointer == "" {
		return "the top level"
	}
	return bound.Shorten(pointer, maxReason)
}

// reason returns the public part of an error: a fault's message, or the text of an error of this package.
func reason(err error) string {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return strings.TrimSuffix(f.Public(), ".")
	}
	return err.Error()
}
