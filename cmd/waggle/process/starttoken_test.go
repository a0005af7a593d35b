package process

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
	p := &process{Options: Options{Config: c, Use: config.For{Embedded: true}}}
	token, err := p.startToken()
	require.NoError(t, err)
	require.Len(t, token, 2*startTokenBytes)
	require.Equal(t, token, p.running.StartToken)
	kept, err := StartToken(c)
	require.NoError(t, err)
	require.Equal(t, token, kept)
	info, err := os.Stat(startTokenFile(c))
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	other, err := p.startToken()
	require.NoError(t, err)
	require.NotEqual(t, token, other, "each start has its own")
	p.close()
	require.NoFileExists(t, startTokenFile(c))

	alone := &process{Options: Options{Config: config.Config{Data: t.TempDir()}}}
	token, err = alone.startToken()
	require.NoError(t, err)
	require.NotEmpty(t, token)
	require.NoFileExists(t, startTokenFile(alone.Config), "the folder belongs to another process")

	keyed := &process{Options: Options{Config: config.Config{Auth: config.Auth{APIKeys: []config.APIKey{{ID: "k"}}}}}}
	token, err = keyed.startToken()
	require.NoError(t, err)
	require.Empty(t, token)
}
