package service

import (
	"encoding/json"
	"slices"

	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/mcp"
)

// card returns the service's directory entry. The caller holds the lock.
func (s *Service) card() (json.RawMessage, error) {
	c := tools.Card{Servers: []string{}}
	for _, srv := range s.servers {
		c.Servers = append(c.Servers, srv.Name())
		if s.states[srv.Name()] != mcp.StateConnected {
			c.Down = append(c.Down, srv.Name())
		}
	}
	slices.Sort(c.Down)
	return json.Marshal(c)
}

// show writes the states of the servers to the directory. The caller holds the lock.
func (s *Service) show() error {
	if s.lease == nil {
		return nil
	}
	data, err := s.card()
	if err != nil {
		return err
	}
	return s.lease.Set(data)
}

// told returns the function that receives a server's changes of state.
func (s *Service) told(name string) func(state string) {
	measure := s.metrics.stateOf()
	return func(state string) {
		measure(state)
		s.mu.Lock()
		defer s.mu.Unlock()
		before := s.states[name]
		s.states[name] = state
		if (before == mcp.StateConnected) == (state == mcp.StateConnected) {
			return
		}
		if err := s.show(); err != nil {
			s.log.Warn().Err(err).Msg("fail to update directory entry")
		}
	}
}
