package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/worker/card"
)

const (
	// checkEvery is soon enough for a person who looks, and costs a provider nothing.
	checkEvery = time.Minute
	// checkMaxWait bounds one sign of life.
	checkMaxWait = 10 * time.Second
)

// profile is the part of the worker's entry in the directory that changes. It is safe for concurrent use.
type profile struct {
	mu      sync.Mutex
	trouble string
	leftOut []card.LeftOut
}

// maxLeftOut bounds the tools in the entry.
const maxLeftOut = 20

// card is the worker's entry in the directory.
func (s *Service) card() card.Card {
	return card.Card{
		Model: s.deps.Model.Name(), Providers: model.Providers(s.deps.Model), Capabilities: s.cfg.Capabilities,
		Trouble: s.profile.trouble, LeftOut: s.profile.leftOut,
	}
}

// lacks tells the directory of a tool that the worker's model is not offered.
func (s *Service) lacks(l card.LeftOut) {
	s.profile.mu.Lock()
	defer s.profile.mu.Unlock()
	s.profile.leftOut = append(s.profile.leftOut, l)
	if n := len(s.profile.leftOut) - maxLeftOut; n > 0 {
		s.profile.leftOut = slices.Clone(s.profile.leftOut[n:])
	}
	s.publish()
}

// publish updates the entry. The profile is locked.
func (s *Service) publish() {
	data, err := s.card().Data()
	if err == nil {
		err = s.seat.Set(data)
	}
	if err != nil {
		s.deps.Logger.Warn().Err(err).Msg("failed to update directory entry")
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
	ctx, cancel := context.WithTimeout(ctx, checkMaxWait)
	defer cancel()
	if err := s.cfg.Check(ctx); err != nil {
		return err.Error()
	}
	return ""
}

func (s *Service) announce(trouble string) {
	log := s.deps.Logger.With().Str("model", s.deps.Model.Name()).Logger()
	if trouble == "" {
		log.Info().Msg("model provider reachable")
	} else {
		log.Warn().Str("trouble", trouble).Msg("model provider unreachable")
	}
	s.profile.mu.Lock()
	defer s.profile.mu.Unlock()
	s.profile.trouble = trouble
	s.publish()
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
