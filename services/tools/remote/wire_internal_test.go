package remote

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/tools"
)

func TestResultsFitIntoAMessage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]string{"x", "ä", "\x01", "\u2028", "\"", "𝄞"}).Draw(t, "unit")
		text := strings.Repeat(unit, rapid.IntRange(0, 20_000).Draw(t, "n"))
		limit := rapid.IntRange(2000, 64<<10).Draw(t, "limit")
		b, err := fit(tools.Result{Text: text, Bytes: len(text)}, limit)
		require.NoError(t, err)
		require.LessOrEqual(t, len(b), limit)
		var out tools.Result
		require.NoError(t, json.Unmarshal(b, &out))
		require.True(t, strings.HasPrefix(text, out.Text))
		require.Equal(t, len(out.Text) < len(text), out.Truncated)
		require.Equal(t, len(text), out.Bytes)
	})
}

func TestDataIsNeverCut(t *testing.T) {
	_, err := fit(tools.Result{Data: []byte(`"` + strings.Repeat("x", 4000) + `"`)}, 2000)
	require.ErrorIs(t, err, fault.New(fault.BadOutput))
}

func TestAFileThatDoesNotFitIsLeftOut(t *testing.T) {
	for size, kept := range map[int]bool{1000: true, 3000: false} {
		b, err := fit(tools.Result{Text: "Appended", File: make([]byte, size)}, 2000)
		require.NoError(t, err)
		require.LessOrEqual(t, len(b), 2000)
		var out tools.Result
		require.NoError(t, json.Unmarshal(b, &out))
		require.Equal(t, "Appended", out.Text)
		require.Equal(t, kept, out.File != nil)
	}
}

func TestImagesThatDoNotFitAreLeftOut(t *testing.T) {
	image := tools.Image{MediaType: "image/png", Data: make([]byte, 500)}
	b, err := fit(tools.Result{Text: "photos", Images: []tools.Image{image, image, image, image}}, 2000)
	require.NoError(t, err)
	require.LessOrEqual(t, len(b), 2000)
	var out tools.Result
	require.NoError(t, json.Unmarshal(b, &out))
	require.Equal(t, "photos", out.Text)
	require.Equal(t, []tools.Image{image, image}, out.Images)
}

func TestPages(t *testing.T) {
	var all []tools.Tool
	for i := range 100 {
		all = append(all, tools.Tool{Name: fmt.Sprintf("t%03d", i), Description: strings.Repeat("x", i*20)})
	}
	var got []tools.Tool
	pages := 0
	for after := ""; ; pages++ {
		some, more := page(all, func(t tools.Tool) string { return t.Name }, after, 3000)
		got = append(got, some...)
		if !more {
			break
		}
		require.NotEmpty(t, some)
		after = some[len(some)-1].Name
	}
	require.Equal(t, all, got)
	require.Greater(t, pages, 10)
}
