package process

import (
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/services/agent/model"
	"github.com/waggle-dev/waggle/services/agent/model/anthropic"
	"github.com/waggle-dev/waggle/services/agent/model/demo"
	"github.com/waggle-dev/waggle/services/agent/model/openai"
)

// OpenModel returns the model that the configuration names. It opens no connection.
func OpenModel(c config.Config, log zerolog.Logger) (model.Model, error) {
	return model.Open(c.Model, model.Env{
		OpenAIKey: c.Providers.OpenAI.APIKey.Reveal(), OpenAIBaseURL: c.Providers.OpenAI.BaseURL,
		AnthropicKey: c.Providers.Anthropic.APIKey.Reveal(), AnthropicBaseURL: c.Providers.Anthropic.BaseURL,
		Logger: log,
	}, demo.Provider(), openai.Provider(), anthropic.Provider())
}
