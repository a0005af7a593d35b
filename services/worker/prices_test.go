package worker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model"
)

func TestCosts(t *testing.T) {
	used := model.Usage{InputTokens: 2_000_000, OutputTokens: 500_000, Known: true}
	p := Prices{"m-2026": {InputPerMillion: 1, OutputPerMillion: 2}, "openai:m": {InputPerMillion: 10, OutputPerMillion: 20}, "m": {InputPerMillion: 100, OutputPerMillion: 200}}
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

	cached, write := 0.5, 6.25
	used.TokenDetails = event.TokenDetails{CachedTokens: 1_500_000, CacheWriteTokens: 100_000}
	for _, c := range []struct {
		price Price
		want  float64
	}{
		{Price{InputPerMillion: 5, OutputPerMillion: 25}, 22.5},
		{Price{InputPerMillion: 5, OutputPerMillion: 25, CachedPerMillion: &cached}, 15.75},
		{Price{InputPerMillion: 5, OutputPerMillion: 25, CachedPerMillion: &cached, CacheWritePerMillion: &write}, 15.875},
	} {
		got := Prices{"m": c.price}.cost(model.Reply{Model: "m", Usage: used}, "m")
		require.InDelta(t, c.want, *got, 1e-9)
	}
	free := Prices{"m": {}}.cost(model.Reply{Model: "m", Usage: used}, "m")
	require.NotNil(t, free)
	require.Zero(t, *free, "free of charge is a price")
}
