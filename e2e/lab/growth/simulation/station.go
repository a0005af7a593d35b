package simulation

import "time"

// visit is work that a station has to do.
type visit struct {
	arrived, service time.Duration
	then             func()
	hold             func(done func()) // instead of a service whose time is known
}

// station is a queue with the cores of a node as its servers: first come, first served.
type station struct {
	e           *engine
	cores, busy int
	queue       []visit
	head        int // of the queue

	began     time.Duration // of the statistics
	changed   time.Duration // when present and busy were last counted
	occupied  time.Duration // cores that worked, over time
	present   time.Duration // visits in the station, over time
	served    int
	stayed    time.Duration // of the served visits, summed
	worked    time.Duration // service of the served visits, summed
	longest   int           // queue
	discarded int           // visits of a station that was lost
	lost      bool
	epoch     int // grows with each loss
}

func newStation(e *engine, cores int) *station { return &station{e: e, cores: cores} }

// do lets the station work, and then calls the function, which may be nil. A lost station calls nothing.
func (s *station) do(service time.Duration, then func()) {
	if s.lost {
		s.discarded++
		return
	}
	s.enter(visit{arrived: s.e.now, service: service, then: then})
}

// hold takes a core until the function that it hands out is called.
func (s *station) hold(then func(done func())) {
	if s.lost {
		s.discarded++
		return
	}
	s.enter(visit{arrived: s.e.now, hold: then})
}

func (s *station) enter(v visit) {
	s.count()
	if s.busy == s.cores {
		s.queue = append(s.queue, v)
		s.longest = max(s.longest, s.waiting())
		return
	}
	s.begin(v)
}

func (s *station) begin(v visit) {
	s.busy++
	epoch := s.epoch
	end := func() {
		if s.epoch == epoch {
			s.end(v)
		}
	}
	if v.hold == nil {
		s.e.after(v.service, end)
		return
	}
	began := s.e.now
	v.hold(func() {
		v.service = s.e.now - began
		end()
	})
}

func (s *station) end(v visit) {
	s.count()
	s.busy--
	s.served++
	s.stayed += s.e.now - v.arrived
	s.worked += v.service
	if s.waiting() > 0 {
		next := s.queue[s.head]
		s.queue[s.head] = visit{}
		if s.head++; s.head > 64 && s.head*2 > len(s.queue) {
			s.queue, s.head = append(s.queue[:0], s.queue[s.head:]...), 0
		}
		s.begin(next)
	}
	if v.then != nil {
		v.then()
	}
}

func (s *station) waiting() int { return len(s.queue) - s.head }

// count adds the time since the last change to the integrals.
func (s *station) count() {
	d := s.e.now - s.changed
	s.changed = s.e.now
	s.occupied += d * time.Duration(s.busy)
	s.present += d * time.Duration(s.busy+s.waiting())
}

// reset begins the statistics anew.
func (s *station) reset() {
	s.count()
	s.began, s.occupied, s.present, s.served, s.stayed, s.worked, s.longest = s.e.now, 0, 0, 0, 0, 0, 0
}

// lose discards the work of the station, and all that comes until restore.
func (s *station) lose() {
	s.count()
	s.lost = true
	s.epoch++
	s.discarded += s.busy + s.waiting()
	s.queue, s.head, s.busy = nil, 0, 0
}

func (s *station) restore() { s.lost = false }

// utilisation is the share of the cores' time that was work.
func (s *station) utilisation() float64 {
	s.count()
	if d := s.e.now - s.began; d > 0 {
		return s.occupied.Seconds() / (d.Seconds() * float64(s.cores))
	}
	return 0
}
