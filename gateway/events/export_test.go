package events

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Bound sets the number of announcements that may wait for this process, of each kind of logs of a tenant with viewers.
func (a *Announcements) Bound(t testing.TB, tenant id.Tenant, messages int) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, sub := range a.tenants[tenant].subs {
		require.NoError(t, sub.SetPendingLimits(messages, -1))
	}
}
