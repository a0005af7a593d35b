package config

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

const (
	// minStateKey makes guessing a key as hard as breaking HMAC-SHA256.
	minStateKey = 32
	// maxTaskAttempts keeps the last pause of a doubling backoff within minutes.
	maxTaskAttempts = 10
	// maxTasks is the maximum of steps of a plan; a higher number of parallel steps has no effect.
	maxTasks = 100
)

// pipeline validates the settings of runs.
func (p *problems) pipeline(c *Pipeline) {
	choices := []string{event.OnBusyReject, event.OnBusyEnqueue, event.OnBusyInterrupt}
	if !slices.Contains(choices, c.OnBusy) {
		p.add("pipeline.on_busy", "%q is not one of reject, enqueue, interrupt", c.OnBusy)
	}
	if c.MaxConcurrent < 1 || c.MaxConcurrent > maxTasks {
		p.add("pipeline.max_concurrent", "%d must be from 1 to %d", c.MaxConcurrent, maxTasks)
	}
	if c.TaskAttempts < 1 || c.TaskAttempts > maxTaskAttempts {
		p.add("pipeline.task_attempts", "%d must be from 1 to %d", c.TaskAttempts, maxTaskAttempts)
	}
	// Frames carry these in whole seconds.
	p.seconds("pipeline.confirm_timeout", c.ConfirmTimeout)
	p.seconds("pipeline.task_timeout", c.TaskTimeout)
	if c.RetryBackoff <= 0 {
		p.add("pipeline.retry_backoff", "%s is not a valid pause", c.RetryBackoff)
	}
}

func (p *problems) seconds(path string, d time.Duration) {
	if d < time.Second {
		p.add(path, "%s must be at least a second", d)
	}
}

// prices validates the prices of models.
func (p *problems) prices(m *Models) {
	seen := map[string]bool{}
	for i, v := range m.Prices {
		at := fmt.Sprintf("models.prices[%d]", i)
		if v.Model == "" || seen[v.Model] {
			p.add(at+".model", "every price needs a unique model")
		}
		seen[v.Model] = true
		p.amount(at+".input", v.Input)
		p.amount(at+".output", v.Output)
		for name, v := range map[string]*float64{".cached": v.Cached, ".cache_write": v.CacheWrite} {
			if v != nil {
				p.amount(at+name, *v)
			}
		}
	}
}

func (p *problems) amount(path string, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		p.add(path, "%v is not a valid amount in dollars", v)
	}
}

// stateKeys validates the keys of exported states; the keys of a file are read later.
func (p *problems) stateKeys(s *Session) {
	if len(s.StateKeys) > 0 && s.StateKeyFile != "" {
		p.add("session.state_keys", "set either session.state_keys or session.state_key_file, not both")
	}
	if err := CheckStateKeys(s.StateKeys); err != nil {
		p.add("session.state_keys", "%s", err)
	}
}

// CheckStateKeys refuses keys that are short enough to guess.
func CheckStateKeys(keys []Secret) error {
	for i, k := range keys {
		if len(k.Reveal()) < minStateKey {
			return fmt.Errorf("key %d has fewer than %d characters (generate one with: openssl rand -hex 32)", i+1, minStateKey)
		}
	}
	return nil
}
