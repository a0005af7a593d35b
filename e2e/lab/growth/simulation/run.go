package simulation

import "time"

func newWorld(cfg Config) *world {
	w := &world{cfg: cfg, e: &engine{}}
	for range max(1, cfg.Cells) {
		w.cells = append(w.cells, newCell(w.e, cfg.Costs, cfg.Shape))
	}
	sizes := spread(cfg.Load)
	cells := cfg.Assign
	if cells == nil {
		cells = Place(sizes, len(w.cells))
	}
	remote := newChance(cfg.Seed, 1)
	key := 0
	for n, users := range sizes {
		t := &tenant{cell: cells[n], remote: remote.Float64() < cfg.Load.Remote}
		w.tenants = append(w.tenants, t)
		for range users {
			u := &user{w: w, tenant: t, key: key}
			u.r, u.own = newChance(cfg.Seed, uint64(2*key+2)), newChance(cfg.Seed, uint64(2*key+3))
			t.users = append(t.users, u)
			u.think() // the rest of an exponential time is as long as the whole
			key++
		}
	}
	for _, l := range cfg.Losses {
		w.e.after(l.At, func() { w.lose(l.Cell) })
		if l.Back > 0 {
			w.e.after(l.Back, w.cells[l.Cell].restore)
		}
	}
	for _, m := range cfg.Moves {
		w.e.after(m.At, func() { w.move(m) })
	}
	return w
}

// lose ends a cell: its answers in progress fail.
func (w *world) lose(n int) {
	c := w.cells[n]
	c.lose()
	for _, t := range w.tenants {
		for _, u := range t.users {
			if u.current != nil && u.current.c == c {
				w.e.after(w.line(t), u.current.fail)
			}
		}
	}
}

// move copies the logs of a tenant to another cell. Answers in progress end where they began.
func (w *world) move(m Move) {
	t := w.tenants[m.Tenant]
	t.moving = true
	w.e.after(m.Copy, func() {
		t.moving, t.cell = false, m.To
		parked := t.parked
		t.parked = nil
		for _, send := range parked {
			send()
		}
	})
}

// reset begins the statistics.
func (w *world) reset() {
	w.waiting(0)
	w.answers, w.tokens, w.failed, w.present = nil, nil, 0, 0
	for _, c := range w.cells {
		c.appends, c.frames = 0, 0
		c.each((*station).reset)
	}
	for _, t := range w.tenants {
		t.answered, t.failed = 0, 0
	}
}

// Run plays the load and returns what happened after the warm-up. The same arguments give the same result.
func Run(cfg Config) Result {
	w := newWorld(cfg)
	w.e.run(cfg.Warm)
	w.reset()
	w.e.run(cfg.Warm + cfg.Length)
	w.waiting(0)
	return w.result()
}

func (w *world) result() Result {
	length := w.cfg.Length.Seconds()
	r := Result{
		Answers: len(w.answers), Failed: w.failed, Rate: float64(len(w.answers)) / length, Waiting: w.present.Seconds() / length,
		First: quantiles(w.tokens, took), FirstOver: quantiles(w.tokens, over),
		Whole: quantiles(w.answers, took), WholeOver: quantiles(w.answers, over),
	}
	for _, a := range w.answers {
		r.Mean += a.took / time.Duration(len(w.answers))
	}
	for _, name := range w.cells[0].names() {
		var all []*station
		for _, c := range w.cells {
			all = append(all, c.parts[name]...)
		}
		r.Parts = append(r.Parts, useOf(name, all))
	}
	most := 0.0
	for _, u := range r.Parts {
		if u.Utilisation > most {
			most, r.Bottleneck = u.Utilisation, u.Part
		}
	}
	for _, c := range w.cells {
		r.Appends += float64(c.appends) / length
		r.Frames += float64(c.frames) / length
	}
	for _, t := range w.tenants {
		r.Tenants = append(r.Tenants, Share{len(t.users), t.cell, t.answered, t.failed})
	}
	return r
}
