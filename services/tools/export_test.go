package tools

import "time"

// Hasten shortens what a service waits for, so that tests need not.
func Hasten(s *Service, confirm, grace, back time.Duration) {
	s.swarm.confirmWait, s.swarm.lostGrace, s.swarm.returnWait = confirm, grace, back
}
