package worker

import (
	"context"
	"time"

	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/worker/card"
)

const (
	// checkEvery is soon enough for a person who looks, and costs a provider nothing.
	checkEvery = time.Minute
	// checkPatience bounds one sign of life.
	checkPatience = 10 * time.Second
)

// card is the worker's entry in the directory.
func (s *Service) card(trouble string) card.Card {
	return card.Card{
		Model: s.deps.Model.Name(), Providers: model.Providers(s.deps.Model), Capabilities: s.cfg.Capabilities, Trouble: trouble,
	}
}

// watchProvider tells the directory whenever the provider of the model begins or ceases to
// be usable, until ctx ends.
func (s *Service) watchProvider(ctx context.Context, tick <-chan time.Time) {
	said := ""
	for {
		if now := s.trouble(ctx); now != said && ctx.Err() == nil {
			said = now
			s.announce(now)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

func (s *Service) trouble(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	if err := s.cfg.Check(ctx); err != nil {
		return err.Error()
	}
	return ""
}

func (s *Service) announce(trouble string) {
	log := s.deps.Logger.With().Str("model", s.deps.Model.Name()).Logger()
	if trouble == "" {
		log.Info().Msg("reach provider again")
	} else {
		log.Warn().Str("trouble", trouble).Msg("fail to reach provider")
	}
	data, err := s.card(trouble).Data()
	if err == nil {
		err = s.seat.Set(data)
	}
	if err != nil {
		log.Warn().Err(err).Msg("fail to update directory entry")
	}
}

// startChecks begins to watch the model provider, if Check is set.
func (s *Service) startChecks() {
	if s.cfg.Check == nil {
		return
	}
	life, end := context.WithCancel(context.Background())
	s.endChecks = end
	s.checks.Go(func() {
		t := time.NewTicker(checkEvery)
		defer t.Stop()
		s.watchProvider(life, t.C)
	})
}

// stopChecks ends it. It may be called twice.
func (s *Service) stopChecks() {
	if s.endChecks != nil {
		s.endChecks()
	}
	s.checks.Wait()
}
