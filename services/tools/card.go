package tools

import (
	"encoding/json"
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// ServiceName is the service in subjects and in the directory.
var ServiceName = id.MustName("tools")

// Card is what the service says of itself in the directory.
type Card struct {
	Servers []string `json:"servers"`        // of its configuration
	Down    []string `json:"down,omitempty"` // those that it is not connected to
}

// card returns what the directory is told. The caller holds the lock.
func (s *Service) card() (json.RawMessage, error) {
	c := Card{Servers: []string{}}
	for _, srv := range s.servers {
		c.Servers = append(c.Servers, srv.cfg.Name)
		if s.states[srv.cfg.Name] != stateConnected {
			c.Down = append(c.Down, srv.cfg.Name)
		}
	}
	slices.Sort(c.Down)
	return json.Marshal(c)
}

// show tells the directory how the servers are. The caller holds the lock.
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

// told returns what a server tells its changes of state to.
func (s *Service) told(name string) func(state string) {
	measure := s.metrics.stateOf()
	return func(state string) {
		measure(state)
		s.mu.Lock()
		defer s.mu.Unlock()
		before := s.states[name]
		s.states[name] = state
		if (before == stateConnected) == (state == stateConnected) {
			return
		}
		if err := s.show(); err != nil {
			s.log.Warn().Err(err).Msg("fail to update directory entry")
		}
	}
}
