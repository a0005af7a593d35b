//go:build nightly

package strictjson_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/strictjson"
)

func TestCheckAllocatesNothing(t *testing.T) {
	doc := frame()
	require.NoError(t, strictjson.Check(doc))
	// The race detector makes sync.Pool drop values now and then, so look for one run
	// without an allocation.
	least := testing.AllocsPerRun(1, func() { _ = strictjson.Check(doc) })
	for range 200 {
		least = min(least, testing.AllocsPerRun(1, func() { _ = strictjson.Check(doc) }))
	}
	require.Zero(t, least)
}
