package session_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/internal/rpc"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/session"
)

// TestWhoSeesASession: to all others it does not exist, whichever way they ask. alice owns it.
func TestWhoSeesASession(t *testing.T) {
	for name, c := range map[string]struct {
		settings access.Settings
		sees     map[string]bool
	}{
		"default": {access.Settings{}, map[string]bool{"alice": true, "bob": false, "carol": false}},
		"team": {
			access.Settings{See: access.Group, Groups: [][]string{{"alice", "bob"}}},
			map[string]bool{"alice": true, "bob": true, "carol": false},
		},
		"tenant": {access.Settings{See: access.Tenant}, map[string]bool{"alice": true, "bob": true, "carol": true}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.start("one", session.Config{Access: access.Policy{Default: c.settings}})
			r.append(log, event.SessionCreatedData{Dialect: "myagent", Principal: "alice"})
			for who, sees := range c.sees {
				_, err := r.attach(cmd.AttachRequest{Principal: who})
				r.sees(err, sees, fault.SessionExpired)
				_, err = r.export(cmd.ExportRequest{Principal: who})
				r.sees(err, sees, fault.SessionExpired)
				var part api.SessionPart
				err = rpc.Call(r.Ctx, r.Conn, cmd.Session, cmd.ShowSession, cmd.SessionRequest{Tenant: log.Tenant, Session: log.Entity, Principal: who}, &part)
				r.sees(err, sees, fault.SessionNotFound)
			}
			_, err := r.attach(cmd.AttachRequest{})
			require.NoError(t, err, "operators do")
		})
	}
}

func (r *rig) sees(err error, sees bool, code fault.Code) {
	r.T.Helper()
	if sees {
		require.NoError(r.T, err)
		return
	}
	isFault(r.T, err, code)
}
