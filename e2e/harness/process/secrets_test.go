package process

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSecretsAreSeen: what was made known as a secret is found wherever it is printed,
// and so is every value with the canary; after that no run is a success.
func TestSecretsAreSeen(t *testing.T) {
	Secret("a token of the test", "wRq7-long-enough")
	Secret("nothing", "short")
	require.Empty(t, findSecrets("good", "a line\nshort\n"))
	require.Zero(t, Audit(0))
	require.Equal(t, []string{"a token of the test"}, findSecrets("bad", "token=wRq7-long-enough\n"))
	require.Equal(t, []string{"a key that a test handed out"}, findSecrets("worse", "key "+Canary+"-key-of-red\n"))
	require.Equal(t, 1, Audit(0))
	require.Equal(t, 3, Audit(3))
}
