package own

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
)

func TestStartToken(t *testing.T) {
	c := config.Config{Data: t.TempDir()}
	_, err := StartToken(c)
	require.ErrorContains(t, err, "start.token")
	token, _, err := NewStartToken(c, true)
	require.NoError(t, err)
	require.Len(t, token, 2*startTokenBytes)
	kept, err := StartToken(c)
	require.NoError(t, err)
	require.Equal(t, token, kept)
	info, err := os.Stat(startTokenFile(c))
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	other, forget, err := NewStartToken(c, true)
	require.NoError(t, err)
	require.NotEqual(t, token, other, "each start has its own")
	forget()
	require.NoFileExists(t, startTokenFile(c))

	beside := config.Config{Data: t.TempDir()}
	token, _, err = NewStartToken(beside, false)
	require.NoError(t, err)
	require.NotEmpty(t, token)
	require.NoFileExists(t, startTokenFile(beside), "the folder belongs to another process")

	token, _, err = NewStartToken(config.Config{Auth: config.Auth{APIKeys: []config.APIKey{{ID: "k"}}}}, true)
	require.NoError(t, err)
	require.Empty(t, token)
}
