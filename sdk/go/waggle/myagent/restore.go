package myagent

import (
	"context"
	"encoding/json"
	"net/url"

	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/sdk/go/link"
)

// Restore restores a session from its signed state, over a separate connection. It
// returns the session's id and the server's remarks on it. A refusal is an *Error.
func Restore(ctx context.Context, opt Options, signed json.RawMessage) (session string, warnings []string, err error) {
	query := url.Values{}
	if opt.Language != "" {
		query.Set("language", opt.Language)
	}
	frame, err := json.Marshal(map[string]any{
		"event": wire.UserReconnectWithState, "signed_state": signed, "metadata": map[string]any{"disconnect_reason": "user_action"},
	})
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	settings := opt.link(nil)
	settings.GiveUp = 0
	l := link.New(settings, link.Protocol[Frame]{
		Decode: Parse,
		Resume: func() (url.Values, error) { return query, nil },
		Begin:  func(ctx context.Context, c *link.Conn) error { return c.Send(ctx, frame) },
		Take: func(_ *link.Conn, f Frame) error {
			switch {
			case f.Event == wire.AgentStateRestored:
				warnings = append(warnings, As[wire.StateRestoredMeta](f.Metadata).Warnings...)
			case f.Event == wire.SystemNotice && f.Meta().Action == wire.ActionReplay:
				session = f.SessionID
				cancel()
			case f.Seq == 0 && refusals[f.Event]:
				return link.Final(f.Err())
			}
			return nil
		},
	})
	err = l.Run(ctx)
	if session != "" {
		return session, warnings, nil
	}
	if ctx.Err() != nil {
		return "", nil, ctx.Err()
	}
	return "", nil, err
}

// refusals are the events that say that nothing was restored.
var refusals = map[string]bool{
	wire.ErrorRecoveryFailed: true, wire.ErrorValidation: true, wire.ErrorRateLimited: true,
	wire.SystemError: true, wire.AgentError: true,
}
