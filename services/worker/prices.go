package worker

import (
	"strings"

	"github.com/waggle-dev/waggle/services/model"
)

// Price is the price of a model in US dollars.
type Price struct {
	InputPerMillion  float64 // tokens that it reads
	OutputPerMillion float64 // tokens that it writes
}

// Prices holds the prices of models by their names: as the provider calls a model in
// its answers, as it was opened ("openai:gpt-x"), or that without the provider.
type Prices map[string]Price

// cost returns the cost of a reply of the model that was opened as spec, nil if it is unknown.
func (p Prices) cost(r model.Reply, spec string) *float64 {
	_, name, _ := strings.Cut(spec, ":")
	for _, n := range []string{r.Model, spec, name} {
		if price, ok := p[n]; ok && r.Usage.Known {
			usd := (float64(r.Usage.InputTokens)*price.InputPerMillion + float64(r.Usage.OutputTokens)*price.OutputPerMillion) / 1e6
			return &usd
		}
	}
	return nil
}
