package gateway

import "time"

// SetDrainMaxWait sets the time that requests in progress have when the gateway drains.
func (s *Server) SetDrainMaxWait(d time.Duration) { s.drainMaxWait = d }
