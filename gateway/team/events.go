package team

import (
	"github.com/waggle-dev/waggle/proto-schemas/event"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
)

// Encode implements dialect.Codec. An event that should give a frame but cannot be read
// gives an ERROR: a viewer must not mistake a damaged log for silence.
func (c *Codec) Encode(e event.Event) [][]byte {
	at := read(e)
	list := at.messages()
	shown := 0
	for i, m := range list {
		list[i].hidden = m.hidden || !c.more && at.adds(m)
		if !list[i].hidden {
			shown++
		}
	}
	frames := make([][]byte, 0, shown)
	for i, m := range list {
		if !m.hidden {
			frames = append(frames, c.render(at, m, count{i: len(frames), n: shown, all: i, of: len(list)}))
		}
	}
	return frames
}

// builders maps the types of events to what makes their messages. A status that
// follows from an event is added to them.
var builders = merged(ofMessages, ofTools, ofTeams, silent)

// messages returns what the event becomes.
func (at *scene) messages() []message {
	build, native := builders[at.Type]
	if !native {
		build = inherited
	}
	list, err := build(at)
	if err != nil {
		return one(wire.Error, unreadable())
	}
	if at.Type == "" {
		return one(wire.Error, unreadable()) // A wrapped event without a type.
	}
	for _, m := range list {
		if m.kind == wire.AgentStatus {
			return list
		}
	}
	return append(list, at.status("")...)
}
