package servicetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Bounded is a test of two replicas of a service with one quota of open entities: three of a
// tenant, two of a principal.
type Bounded struct {
	*Rig
	Things string                                         // noun for the entities in a refusal
	Frees  string                                         // the advice of a refusal how to make room
	Begin  func(of id.Tenant, who string) (string, error) // by whichever replica takes it
	End    func(thing string)                             // of ann
	Doomed Component                                      // one of the replicas
}

// Check begins as many entities as may be open; both replicas refuse the next one. Entities of
// another tenant do not count. An end makes room, also after the loss of a replica.
func (b Bounded) Check() {
	b.T.Helper()
	tenant := id.DefaultTenant
	other, err := id.ParseTenant("other")
	require.NoError(b.T, err)
	var anns []string
	for range 2 {
		anns = append(anns, b.begun(tenant, "ann"))
	}
	b.refused(tenant, "ann", "You have used up the quota of 2 "+b.Things)
	b.begun(tenant, "bob")
	b.refused(tenant, "bob", "Your tenant has used up the quota of 3 "+b.Things)
	for range 2 {
		b.begun(other, "ann")
	}
	b.refused(other, "ann", "You have used up the quota of 2 "+b.Things)

	b.Doomed.Stop()
	b.refused(tenant, "bob", "Your tenant has used up")
	for _, thing := range anns {
		b.End(thing)
	}
	for _, who := range []string{"bob", "ann"} {
		require.Eventually(b.T, func() bool {
			_, err := b.Begin(tenant, who)
			return err == nil
		}, b.maxWait, 10*time.Millisecond, "no room for %s", who)
	}
	b.refused(tenant, "eve", "Your tenant has used up")
}

func (b Bounded) begun(of id.Tenant, who string) string {
	b.T.Helper()
	thing, err := b.Begin(of, who)
	require.NoError(b.T, err)
	return thing
}

func (b Bounded) refused(of id.Tenant, who, why string) {
	b.T.Helper()
	for range 4 { // by whichever is asked
		_, err := b.Begin(of, who)
		require.ErrorIs(b.T, err, fault.New(fault.QuotaExceeded))
		require.ErrorContains(b.T, err, why)
		require.ErrorContains(b.T, err, b.Frees)
	}
}
