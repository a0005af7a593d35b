package gateway

import "time"

// SetDrainPatience sets the time that requests in progress have when the gateway drains.
func (s *Server) SetDrainPatience(d time.Duration) { s.drainPatience = d }
