package turn

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

func TestTurnsOfOneTenantLeaveThoseOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := New(2)
		a := id.DefaultTenant
		b, err := id.ParseTenant("other")
		require.NoError(t, err)
		first, err := turns.Take(t.Context(), a)
		require.NoError(t, err)
		second, err := turns.Take(t.Context(), a)
		require.NoError(t, err)
		third := make(chan func())
		go func() {
			done, _ := turns.Take(context.Background(), a)
			third <- done
		}()
		synctest.Wait()
		select {
		case <-third:
			t.Fatal("a tenant has more turns than its own")
		default:
		}
		other, err := turns.Take(t.Context(), b)
		require.NoError(t, err, "another tenant does not wait")
		other()

		over, cancel := context.WithCancelCause(t.Context())
		ended := errors.New("the call has ended")
		cancel(ended)
		_, err = turns.Take(over, a)
		require.ErrorIs(t, err, ended)

		first()
		(<-third)()
		second()
		require.Empty(t, turns.of, "nothing is kept of tenants without a turn")
	})
}

func TestNoTurnsAreNoLimit(t *testing.T) {
	var turns *Turns
	for range 10 {
		_, err := turns.Take(t.Context(), id.DefaultTenant)
		require.NoError(t, err)
	}
}
