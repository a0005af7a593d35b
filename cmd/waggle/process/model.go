package process

import (
	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/providers"
)

// OpenModel returns the model that the configuration names, and the models of all providers with access, for members of
// teams whose definition names one. It opens no connection.
func OpenModel(c config.Config) (model.Model, error) {
	return providers.Open(c.Model, c.Providers.Env())
}
