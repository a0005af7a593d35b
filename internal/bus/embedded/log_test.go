package embedded

import (
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

func TestTheLogTellsWhichStreamIsDead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		says string
		dead []string
	}{
		{"Filestore [EVT_09] Critical write error: write 1.blk: no space left on device", []string{"EVT_09"}},
		{"JetStream stream '$G > KV_directory' critical write error: write 1.blk: no space left on device", []string{"KV_directory"}},
		{"JetStream out of File resources, will be DISABLED", []string{""}},
		{"JetStream failed to store a msg on stream '$G > CMD': no space left on device", nil},
		{"Filestore [A] Resource not found: x", nil},
	} {
		var dead []string
		l := &serverLog{to: zerolog.Nop(), failed: func(stream string) { dead = append(dead, stream) }}
		l.Errorf("%s", c.says)
		require.Equal(t, c.dead, dead, c.says)
	}
}
