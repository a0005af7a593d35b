// Package team translates between the streaming protocol of agent teams and the
// canonical commands and events of teams, their members and any other run.
//
// One event gives up to MaxFrames frames, each of which is a safe place to resume: see Place.
//
// Clients drop frames by positions that grow strictly. The position of a frame is the event's seq times 16 plus the frame's
// number within the event, and the last frame of an event is always number 15: a reader can tell from a position alone if
// its event is complete.
//
// The greeting is a snapshot of the statuses without positions, because it does not come from one event: no client resumes
// from it.
package team

import (
	"net/url"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// The query parameters that choose between the codecs.
const (
	paramFormat    = "format"    // the form of messages
	paramAdditions = "additions" // true: also what the original protocol does not have
)

// The forms of messages.
const (
	flattened = "flattened" // the default: what the original sends
	enveloped = "envelope"  // the inner frames of the original
)

// Teams returns the dialect of sockets that show a team, or another run.
func Teams() Dialect { return Dialect{flat: teamFlat, more: teamMore, deep: teamDeep} }

// Agents returns the dialect of sockets that show one member of a team.
func Agents() Dialect { return Dialect{flat: agentFlat, more: agentMore, deep: agentDeep} }

// The codecs.
var (
	teamFlat  = &Codec{name: "agent-team"}
	teamMore  = &Codec{name: "agent-team+additions", more: true}
	teamDeep  = &Codec{name: "agent-team+envelope", more: true, deep: true}
	agentFlat = &Codec{name: "agent", single: true}
	agentMore = &Codec{name: "agent+additions", single: true, more: true}
	agentDeep = &Codec{name: "agent+envelope", single: true, more: true, deep: true}
)

// Dialect is the protocol on the sockets of one kind.
type Dialect struct{ flat, more, deep *Codec }

// Name implements dialect.Dialect.
func (d Dialect) Name() string { return d.flat.name }

// Bind implements dialect.Dialect.
func (d Dialect) Bind(query url.Values) (dialect.Codec, error) {
	c, err := d.Codec(query)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Codec returns the codec for a socket opened with the query, as Bind does. The query's format is flattened, which is the
// default, or envelope; additions is false, which is the default, or true. The envelope form, which the original sends to no
// client, always has them.
func (d Dialect) Codec(query url.Values) (*Codec, error) {
	more := query.Get(paramAdditions)
	if more != "" && more != "true" && more != "false" {
		return nil, fault.Newf(fault.InvalidField, "additions must be true or false.").At(paramAdditions)
	}
	switch query.Get(paramFormat) {
	case "", flattened:
		if more == "true" {
			return d.more, nil
		}
		return d.flat, nil
	case enveloped:
		return d.deep, nil
	}
	return nil, fault.Newf(fault.InvalidField, "format must be %s or %s.", flattened, enveloped).At(paramFormat)
}

// Codec is one variant: whose sockets it is for, and the form of messages. The log that its sockets show is there before they
// are. An event gives up to MaxFrames frames, each with a position of its own, which grows from frame to frame.
type Codec struct {
	name   string
	single bool // for sockets that show one agent
	more   bool // also what the original protocol does not have
	deep   bool // the envelope form
}

// Name implements dialect.Codec.
func (c *Codec) Name() string { return c.name }

func invalid(field, text string) *fault.Fault {
	return fault.Newf(fault.InvalidField, "%s", text).At(field)
}
