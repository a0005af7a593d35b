package process

import (
	"slices"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/anthropic"
	"github.com/waggle-dev/waggle/services/model/demo"
	"github.com/waggle-dev/waggle/services/model/openai"
)

// OpenModel returns the model that the configuration names, and the models of all providers with access, for members of
// teams whose definition names one. It opens no connection.
func OpenModel(c config.Config) (model.Model, error) {
	all := []model.Provider{demo.Provider(), openai.Provider(), anthropic.Provider()}
	env := model.Env{
		OpenAIKey: c.Providers.OpenAI.APIKey.Reveal(), OpenAIBaseURL: c.Providers.OpenAI.BaseURL,
		AnthropicKey: c.Providers.Anthropic.APIKey.Reveal(), AnthropicBaseURL: c.Providers.Anthropic.BaseURL,
	}
	standard, err := model.Open(c.Model, env, all...)
	if err != nil {
		return nil, err
	}
	set := model.NewSet(standard)
	for _, p := range all {
		if slices.Contains(model.Providers(set), p.Prefix) {
			continue
		}
		if m, err := model.Any(p, env); err == nil { // an error means that the configuration gives no access
			set.Add(m)
		}
	}
	return set, nil
}
