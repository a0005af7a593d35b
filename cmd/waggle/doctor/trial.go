package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	asked "github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/trial"
)

// trialMaxWait bounds all trials of a model: a local one may read its weights first.
const trialMaxWait = 10 * time.Minute

// TryModel asks a model what it can do, and passes each finding on.
func TryModel(ctx context.Context, c config.Config, m asked.Model, report func(Finding)) {
	ctx, cancel := context.WithTimeout(ctx, trialMaxWait)
	defer cancel()
	levels := map[trial.Grade]Level{trial.Works: OK, trial.Doubts: Warn, trial.Missing: Fail}
	trial.Run(ctx, m, time.Now, func(r trial.Result) {
		is := r.Is + "\n" + cost(c, m.Name(), r)
		if r.Stopped {
			is += "; the other questions were not asked"
		}
		report(Finding{Level: levels[r.Grade], What: r.Name, Is: is, Do: r.Do})
	})
}

// cost says what a trial took.
func cost(c config.Config, name string, r trial.Result) string {
	took := r.Took.Round(time.Millisecond).String()
	u := r.Usage
	if !u.Known {
		return took + ", tokens unknown"
	}
	text := fmt.Sprintf("%s, %d tokens in, %d out", took, u.InputTokens, u.OutputTokens)
	if u.CachedTokens > 0 {
		text += fmt.Sprintf(", %d of them cached", u.CachedTokens)
	}
	_, short, _ := strings.Cut(name, ":")
	for _, p := range c.Models.Prices {
		if p.Model == name || p.Model == short {
			return text + fmt.Sprintf(", $%.6f", (float64(u.InputTokens)*p.Input+float64(u.OutputTokens)*p.Output)/1e6)
		}
	}
	return text
}
