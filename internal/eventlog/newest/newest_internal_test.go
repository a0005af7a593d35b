package newest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPageHasASubjectOnce(t *testing.T) {
	t.Parallel()
	got := distinct([]Entry{{Subject: "b", Sequence: 9}, {Subject: "a", Sequence: 7}, {Subject: "b", Sequence: 4}, {Subject: "c", Sequence: 2}})
	require.Equal(t, []Entry{{Subject: "b", Sequence: 9}, {Subject: "a", Sequence: 7}, {Subject: "c", Sequence: 2}}, got)
	require.Empty(t, distinct(nil))
}
