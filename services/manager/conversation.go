package manager

import (
	"context"
	"time"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/conversation"
)

// Sessions returns cfg for the logs of sessions, with the reducer of package
// conversation.
func Sessions(cfg Config[conversation.State], rules conversation.Rules) Config[conversation.State] {
	return conversations(cfg, id.KindSession, rules)
}

// Agents returns cfg for the logs of the members of teams, with the same reducer.
func Agents(cfg Config[conversation.State], rules conversation.Rules) Config[conversation.State] {
	return conversations(cfg, id.KindMember, rules)
}

func conversations(cfg Config[conversation.State], kind id.Kind, rules conversation.Rules) Config[conversation.State] {
	cfg.Kind = kind
	cfg.Apply = (*conversation.State).Apply
	cfg.Decide = func(_ context.Context, h *Held[conversation.State], c cmd.Command, now time.Time) (Decision, error) {
		d, err := h.State.Decide(c, now, rules)
		return Decided(d.Facts, d.Aside), err
	}
	return cfg
}
