package teamwork

// halts is whether the team is paused, and how far nested teams have followed.
type halts struct {
	paused   bool
	flips    int    // how often it was paused or resumed
	pausedAt uint64 // seq of the newest pause: messages after it have not been handed on while it lasts
}

// Paused reports whether members get no messages.
func (h *halts) Paused() bool { return h.paused }

// flip notes that nested teams are to follow, but for those that need not.
func (h *halts) flip(order []*member) {
	h.flips++
	for _, m := range order {
		if m.Halted == h.paused || m.Seq == 0 {
			m.Flip = h.flips
		}
	}
}

// halt notes that a nested team was paused or resumed.
func (h *halts) halt(m *member, paused bool) {
	if m.Halted = paused; paused == h.paused {
		m.Flip = h.flips
	}
}
