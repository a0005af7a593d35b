package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/tools"
)

func TestRepliesFitIntoAMessage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]string{"x", "ä", "\x01", "\u2028", "\"", "𝄞"}).Draw(t, "unit")
		text := strings.Repeat(unit, rapid.IntRange(0, 20_000).Draw(t, "n"))
		limit := rapid.IntRange(envelope+2000, 64<<10).Draw(t, "limit")
		m, err := message("to", reply{Result: &tools.Result{Text: text, Bytes: len(text)}}, limit)
		require.NoError(t, err)
		require.LessOrEqual(t, m.Size(), limit)
		out, err := decodeReply(m)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(text, out.Result.Text))
		require.Equal(t, len(out.Result.Text) < len(text), out.Result.Truncated)
		require.Equal(t, len(text), out.Result.Bytes)
	})
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

func TestFaultsSurviveTheWay(t *testing.T) {
	f := fault.Newf(fault.ToolBadInput, "no").At("/a").Wrap(errors.New("secret cause"))
	b, err := json.Marshal(faultReply(f))
	require.NoError(t, err)
	require.NotContains(t, string(b), "secret")
	var r reply
	require.NoError(t, json.Unmarshal(b, &r))
	require.ErrorIs(t, r.Fault.fault(), fault.New(fault.ToolBadInput))
	require.Equal(t, "/a", r.Fault.fault().Field)
}
