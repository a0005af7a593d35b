package service

import (
	"bytes"
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
		c.Add(srv.Name(), srv.Report())
	}
	slices.Sort(c.Down)
	return json.Marshal(c)
}

// show writes the states of the servers to the directory, if they have changed. The caller holds the lock.
func (s *Service) show() error {
	if s.lease == nil {
		return nil
	}
	data, err := s.card()
	if err != nil || bytes.Equal(data, s.shown) {
		return err
	}
	s.shown = data
	return s.lease.Set(data)
}

// told returns the function that receives a server's changes.
func (s *Service) told(name string) func(state string) {
	measure := s.metrics.stateOf()
	return func(state string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if state != mcp.StateSame {
			measure(state)
			s.states[name] = state
		}
		if err := s.show(); err != nil {
			s.log.Warn().Err(err).Msg("failed to update directory entry")
		}
	}
}
