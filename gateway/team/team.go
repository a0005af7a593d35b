// Package team translates between the streaming protocol of agent teams and the
// canonical commands and events of teams, their members and any other run.
//
// One event gives up to MaxFrames frames, each of which is a safe place to resume: see
// dialect.Teams.
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
func Teams() dialect.TeamDialect { return variants{flat: teamFlat, more: teamMore, deep: teamDeep} }

// Agents returns the dialect of sockets that show one member of a team.
func Agents() dialect.TeamDialect { return variants{flat: agentFlat, more: agentMore, deep: agentDeep} }

// The codecs.
var (
	teamFlat  = &codec{name: "agent-team"}
	teamMore  = &codec{name: "agent-team+additions", more: true}
	teamDeep  = &codec{name: "agent-team+envelope", more: true, deep: true}
	agentFlat = &codec{name: "agent", single: true}
	agentMore = &codec{name: "agent+additions", single: true, more: true}
	agentDeep = &codec{name: "agent+envelope", single: true, more: true, deep: true}
)

// variants is a dialect.
type variants struct{ flat, more, deep *codec }

// Name implements dialect.Dialect.
func (v variants) Name() string { return v.flat.name }

// Bind implements dialect.Dialect.
func (v variants) Bind(query url.Values) (dialect.Codec, error) { return v.BindTeams(query) }

// BindTeams implements dialect.TeamDialect. The query's format is flattened, which is the
// default, or envelope; additions is false, which is the default, or true. The envelope
// form, which the original sends to no client, always has them.
func (v variants) BindTeams(query url.Values) (dialect.Teams, error) {
	more := query.Get(paramAdditions)
	if more != "" && more != "true" && more != "false" {
		return nil, fault.Newf(fault.InvalidField, "additions must be true or false.").At(paramAdditions)
	}
	switch query.Get(paramFormat) {
	case "", flattened:
		if more == "true" {
			return v.more, nil
		}
		return v.flat, nil
	case enveloped:
		return v.deep, nil
	}
	return nil, fault.Newf(fault.InvalidField, "format must be %s or %s.", flattened, enveloped).At(paramFormat)
}

// codec is one variant: whose sockets it is for, and the form of messages.
type codec struct {
	name   string
	single bool // for sockets that show one agent
	more   bool // also what the original protocol does not have
	deep   bool // the envelope form
}

var _ dialect.Teams = (*codec)(nil)

// Name implements dialect.Codec.
func (c *codec) Name() string { return c.name }

func invalid(field, text string) *fault.Fault {
	return fault.Newf(fault.InvalidField, "%s", text).At(field)
}
