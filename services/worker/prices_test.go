package worker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/services/model"
)

func TestCosts(t *testing.T) {
	used := model.Usage{InputTokens: 2_000_000, OutputTokens: 500_000, Known: true}
	p := Prices{"m-2026": {1, 2}, "openai:m": {10, 20}, "m": {100, 200}}
	for _, c := range []struct {
		reply, spec string
		want        float64
	}{
		{"m-2026", "openai:m", 3},
		{"m-2027", "openai:m", 30},
		{"m-2027", "other:m", 300},
		{"m", "demo", 300},
	} {
		got := p.cost(model.Reply{Model: c.reply, Usage: used}, c.spec)
		require.NotNil(t, got)
		require.InDelta(t, c.want, *got, 1e-9, "%+v", c)
	}
	require.Nil(t, p.cost(model.Reply{Model: "n", Usage: used}, "openai:n"), "no price is no cost")
	require.Nil(t, p.cost(model.Reply{Model: "demo", Usage: used}, "demo"))
	require.Nil(t, p.cost(model.Reply{Model: "m"}, "openai:m"), "nothing is known of what it consumed")
	require.Nil(t, Prices(nil).cost(model.Reply{Model: "m", Usage: used}, "m"))
	free := Prices{"m": {}}.cost(model.Reply{Model: "m", Usage: used}, "m")
	require.NotNil(t, free)
	require.Zero(t, *free, "free of charge is a price")
}
