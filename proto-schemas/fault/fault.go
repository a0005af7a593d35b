// Package fault is the error catalogue of Waggle: the only errors that ever reach a client.
//
// A fault names the problem and the remedy, and reveals nothing about the inside of the server. Any other error is
// reported as Internal with a reference under which the log has the details.
package fault

import (
	"errors"
	"fmt"
	"strings"
)

// Fault is an error that a client may see. It matches errors.Is against another Fault of the same code.
type Fault struct {
	Code    Code
	Message string
	Ref     string // reference into the server's log; Internal only
	Field   string // the offending field; may be empty

	Constraint string // the rule for a value of the field; may be empty
	Provided   []byte // the offending value as JSON; may be nil
	Details    []byte // of the program that failed, as JSON; may be nil

	cause error
}

// New returns the catalogue's fault for the code, with its default text.
func New(c Code) *Fault { return &Fault{Code: c, Message: Lookup(c).Message} }

// Newf returns a fault with the given text.
func Newf(c Code, format string, args ...any) *Fault {
	return &Fault{Code: c, Message: fmt.Sprintf(format, args...)}
}

// Wrap attaches the cause for logs; clients do not see it.
func (f *Fault) Wrap(cause error) *Fault {
	c := *f
	c.cause = cause
	return &c
}

// At names the offending field.
func (f *Fault) At(field string) *Fault {
	c := *f
	c.Field = field
	return &c
}

// Unlike returns the fault with the rule that the field's value broke and, as JSON,
// the value.
func (f *Fault) Unlike(constraint string, provided []byte) *Fault {
	c := *f
	c.Constraint, c.Provided = constraint, provided
	return &c
}

// With returns the fault with details of the program that failed, as JSON.
func (f *Fault) With(details []byte) *Fault {
	c := *f
	c.Details = details
	return &c
}

// Error returns code and message and, for logs, the cause.
func (f *Fault) Error() string {
	s := string(f.Code) + ": " + f.Message
	if f.cause != nil {
		s += ": " + f.cause.Error()
	}
	return s
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.cause }

// Is reports whether target is a fault of the same code.
func (f *Fault) Is(target error) bool {
	t, ok := target.(*Fault) // a single link of the chain, by the contract of Is
	return ok && t.Code == f.Code
}

// Public returns the text for clients: the message and, if set, the reference into the server's log.
func (f *Fault) Public() string {
	if f.Ref != "" {
		return f.Message + " (reference " + f.Ref + ")"
	}
	return f.Message
}

// Retryable reports whether the same request may succeed later.
func (f *Fault) Retryable() bool { return Lookup(f.Code).Retryable }

// From returns the fault in err's chain, or Internal with the reference ref and
// err as its cause. It returns nil for a nil error.
func From(err error, ref string) *Fault {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*Fault](err); ok {
		return f
	}
	f := New(Internal).Wrap(err)
	f.Ref = ref
	return f
}

// Problem returns the first sentence of the message: the problem without the remedy.
func (e Entry) Problem() string {
	problem, _, _ := strings.Cut(e.Message, ". ")
	return strings.TrimSuffix(problem, ".") + "."
}

// Lookup returns the catalogue's entry for the code; an unknown code is Internal.
func Lookup(c Code) Entry {
	if e, ok := index[c]; ok {
		return e
	}
	return index[Internal]
}

var index = func() map[Code]Entry {
	m := make(map[Code]Entry, len(Catalogue))
	for _, e := range Catalogue {
		m[e.Code] = e
	}
	return m
}()
