// Package orbit translates between the ORBIT chat protocol and the canonical
// commands and events of a session.
//
// One canonical event gives at most one frame, so that the seq of any frame is a
// safe place to resume.
package orbit

import (
	"net/url"

	"github.com/waggle-dev/waggle/gateway/dialect"
)

// Dialect returns the ORBIT dialect.
func Dialect() dialect.Dialect { return orbit{} }

type orbit struct{}

// Name implements dialect.Dialect.
func (orbit) Name() string { return "orbit" }

// Bind implements dialect.Dialect. The query's deltas=true asks for the text of
// the model as it is written.
func (orbit) Bind(url.Values) (dialect.Codec, error) { panic("not yet") }
