// Package orbit translates between the ORBIT chat protocol and the canonical
// commands and events of a session.
//
// One canonical event gives at most one frame, so that the seq of any frame is a
// safe place to resume.
//
// A fact that needs two frames needs two events in the log.
package orbit

import (
	"net/url"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// paramDeltas is the query parameter that asks for texts while they are written.
const paramDeltas = "deltas"

// Dialect returns the ORBIT dialect.
func Dialect() dialect.Dialect { return orbit{} }

type orbit struct{}

// Name implements dialect.Dialect.
func (orbit) Name() string { return "orbit" }

// Bind implements dialect.Dialect. The query's deltas=true asks for the text of
// the model as it is written. A client that names nothing of this protocol's additions may be the original's page.
func (orbit) Bind(query url.Values) (dialect.Codec, error) {
	switch query.Get(paramDeltas) {
	case "":
		if !query.Has("watch") && !query.Has("session") {
			return original, nil
		}
		return plain, nil
	case "false", "0":
		return plain, nil
	case "true", "1":
		return streaming, nil
	}
	return nil, fault.Newf(fault.InvalidField, "deltas must be true or false.").At(paramDeltas)
}

// The codecs of the dialect.
var (
	plain     dialect.Codec = codec{name: "orbit", frames: join(answers, additions)}
	original  dialect.Codec = codec{name: "orbit+page", frames: join(join(answers, additions), page)}
	streaming dialect.Codec = codec{name: "orbit+deltas", frames: join(join(answers, additions), deltas)}
)

// codec is one variant of the dialect, with the frames of its own.
type codec struct {
	name   string
	frames frames
}

// Name implements dialect.Codec.
func (c codec) Name() string { return c.name }
