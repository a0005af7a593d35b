package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/waggle-dev/waggle/cmd/waggle/client"
	"github.com/waggle-dev/waggle/cmd/waggle/socket"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// Signed finds the signed state in what Export returned, in the metadata of an
// agent.state_exported frame, or in the signed state itself.
func Signed(file []byte) (json.RawMessage, error) {
	var d struct {
		Signed      json.RawMessage `json:"signed"`
		SignedState json.RawMessage `json:"signed_state"`
		Signature   string          `json:"signature"`
	}
	if err := json.Unmarshal(file, &d); err != nil {
		return nil, fmt.Errorf("the file is no exported state: %w", err)
	}
	switch {
	case d.Signature != "":
		return file, nil
	case d.Signed != nil:
		return d.Signed, nil
	case d.SignedState != nil:
		return d.SignedState, nil
	}
	return nil, errors.New("the file is no exported state: it has no signed state")
}

// Import restores a session from a signed state over the session socket at the URL
// and returns its id, and what the server remarks on it, in the language (zh_CN or en_US;
// empty = the server's choice).
func Import(ctx context.Context, url, token, language string, signed json.RawMessage) (session string, warnings []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	query := map[string]string{}
	if language != "" {
		query["language"] = language
	}
	target, err := socket.Target(url, query)
	if err != nil {
		return "", nil, err
	}
	conn, err := socket.Dial(ctx, target, token)
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = conn.CloseNow() }()
	if err := socket.WriteJSON(ctx, conn, map[string]any{
		"event": myagent.UserReconnectWithState, "signed_state": signed, "metadata": map[string]any{"disconnect_reason": "user_action"},
	}); err != nil {
		return "", nil, err
	}
	for {
		f, err := client.Read(ctx, conn)
		if err != nil {
			return "", nil, err
		}
		switch {
		case f.Event == myagent.AgentStateRestored:
			warnings = append(warnings, client.As[myagent.StateRestoredMeta](f.Metadata).Warnings...)
		case f.Event == myagent.SystemNotice && f.Meta().Action == myagent.ActionReplay:
			return f.SessionID, warnings, nil
		case f.Seq == 0 && refusals[f.Event]:
			return "", nil, errors.New(client.ErrorText(f))
		}
	}
}

// refusals are the events that say that nothing was restored.
var refusals = map[string]bool{
	myagent.ErrorRecoveryFailed: true, myagent.ErrorValidation: true, myagent.ErrorRateLimited: true,
	myagent.SystemError: true, myagent.AgentError: true,
}
