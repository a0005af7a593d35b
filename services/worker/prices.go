package worker

import (
	"strings"

	"github.com/waggle-dev/waggle/services/model"
)

// Price is the price of a model in US dollars.
type Price struct {
	InputPerMillion      float64  // tokens that it reads
	OutputPerMillion     float64  // tokens that it writes, reasoning included
	CachedPerMillion     *float64 // tokens that it reads from the provider's cache; nil = as input
	CacheWritePerMillion *float64 // tokens that it writes to the provider's cache; nil = as input
}

func (p Price) of(u model.Usage) float64 {
	cached, write := p.InputPerMillion, p.InputPerMillion
	if p.CachedPerMillion != nil {
		cached = *p.CachedPerMillion
	}
	if p.CacheWritePerMillion != nil {
		write = *p.CacheWritePerMillion
	}
	plain := u.InputTokens - u.CachedTokens - u.CacheWriteTokens
	return (float64(plain)*p.InputPerMillion + float64(u.CachedTokens)*cached + float64(u.CacheWriteTokens)*write + float64(u.OutputTokens)*p.OutputPerMillion) / 1e6
}

// Prices holds the prices of models by their names: as the provider calls a model in
// its answers, as it was opened ("openai:gpt-x"), or that without the provider.
type Prices map[string]Price

// cost returns the cost of a reply of the model that was opened as spec, nil if it is unknown.
func (p Prices) cost(r model.Reply, spec string) *float64 {
	_, name, _ := strings.Cut(spec, ":")
	for _, n := range []string{r.Model, spec, name} {
		if price, ok := p[n]; ok && r.Usage.Known {
			usd := price.of(r.Usage)
			return &usd
		}
	}
	return nil
}
