// Package team translates between the streaming protocol of agent teams and the
// canonical commands and events of teams, their members and any other run.
//
// One event gives up to MaxFrames frames, each of which is a safe place to resume: see
// dialect.Teams.
package team

import (
	"net/url"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// paramFormat is the query parameter that chooses between the forms of messages.
const paramFormat = "format"

// The forms of messages.
const (
	flattened = "flattened" // the default: what the original sends
	enveloped = "envelope"  // what the original has inside
)

// Teams returns the dialect of sockets that show a team, or another run. Its codecs
// implement dialect.Teams.
func Teams() dialect.Dialect { return variants{flat: teamFlat, deep: teamDeep} }

// Agents returns the dialect of sockets that show one member of a team. Its codecs
// implement dialect.Teams.
func Agents() dialect.Dialect { return variants{flat: agentFlat, deep: agentDeep} }

// The codecs.
var (
	teamFlat  = &codec{name: "agent-team"}
	teamDeep  = &codec{name: "agent-team+envelope", deep: true}
	agentFlat = &codec{name: "agent", single: true}
	agentDeep = &codec{name: "agent+envelope", single: true, deep: true}
)

// variants is a dialect.
type variants struct{ flat, deep *codec }

// Name implements dialect.Dialect.
func (v variants) Name() string { return v.flat.name }

// Bind implements dialect.Dialect. The query's format is flattened, which is the
// default, or envelope.
func (v variants) Bind(query url.Values) (dialect.Codec, error) {
	switch query.Get(paramFormat) {
	case "", flattened:
		return v.flat, nil
	case enveloped:
		return v.deep, nil
	}
	return nil, fault.Newf(fault.InvalidField, "format is %s or %s.", flattened, enveloped).At(paramFormat)
}

// codec is one variant: whose sockets it is for, and the form of messages.
type codec struct {
	name   string
	single bool // for sockets that show one agent
	deep   bool // the envelope form
}

var _ dialect.Teams = (*codec)(nil)

// Name implements dialect.Codec.
func (c *codec) Name() string { return c.name }
