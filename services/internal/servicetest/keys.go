package servicetest

import (
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/signature"
)

// Keys returns a gateway's signer with a new key, and the verifier that accepts it. now dates the signatures; nil = time.Now.
func Keys(t testing.TB, now func() time.Time) (*signature.Signer, *signature.Verifier) {
	t.Helper()
	pair, err := nkeys.CreatePair(signature.Prefix)
	require.NoError(t, err)
	seed, err := pair.Seed()
	require.NoError(t, err)
	s, err := signature.NewSigner(seed, now)
	require.NoError(t, err)
	public, err := s.Public()
	require.NoError(t, err)
	v, err := signature.NewVerifier(public)
	require.NoError(t, err)
	return s, v
}
