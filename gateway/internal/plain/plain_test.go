package plain_test

import (
	"io/fs"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/gateway/internal/plain"
)

func suite(t testing.TB) dialecttest.Suite {
	t.Helper()
	examples, err := fs.Sub(plain.Examples, "examples")
	require.NoError(t, err)
	return dialecttest.Suite{
		Dialect:     plain.Dialect(),
		Package:     "github.com/waggle-dev/waggle/gateway/internal/plain",
		Variants:    []url.Values{{}},
		Transcripts: "testdata/transcripts",
		Schema:      plain.Schema,
		Examples:    examples,
		Inbound:     plain.Inbound,
		Outbound:    plain.Outbound,
	}
}

func TestConformance(t *testing.T) { dialecttest.Exercise(t, suite(t)) }

func FuzzDecode(f *testing.F) { dialecttest.FuzzDecode(f, suite(f)) }

func FuzzEncode(f *testing.F) { dialecttest.FuzzEncode(f, suite(f)) }
