package hostile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/strictjson/hostile"
)

func TestTheCorpusIsWhatItSays(t *testing.T) {
	names, bad := map[string]bool{}, 0
	for _, d := range hostile.Documents() {
		require.False(t, names[d.Name], "%s occurs twice", d.Name)
		names[d.Name] = true
		require.Equal(t, d.Legal, d.Code == "", d.Name)
		require.LessOrEqual(t, len(d.Body), 256<<10, "%s is too large for a frame", d.Name)
		if !d.Legal {
			bad++
		}
	}
	require.GreaterOrEqual(t, bad, 300)
	t.Logf("%d documents, %d of them not legal", len(names), bad)
}
