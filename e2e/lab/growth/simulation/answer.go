package simulation

import "time"

// think plans the next message.
func (u *user) think() {
	u.current = nil
	if u.w.cfg.MaxAsks > 0 && u.asked == u.w.cfg.MaxAsks {
		return
	}
	u.w.e.after(u.own.exponential(u.w.cfg.Load.Think), u.ask)
}

// ask sends a message. A lost cell refuses it, and a moving tenant keeps it.
func (u *user) ask() {
	u.asked++
	u.w.waiting(1)
	u.send(u.w.e.now)
}

func (u *user) send(began time.Duration) {
	t := u.tenant
	if t.moving {
		t.parked = append(t.parked, func() { u.send(began) })
		return
	}
	c := u.w.cells[t.cell]
	a := &answer{u: u, c: c, began: began}
	u.current = a
	if c.lost {
		u.w.e.after(u.w.line(t), a.fail)
		return
	}
	a.travel(func() { c.node(partGateway, u.key).do(u.r.exponential(c.costs.GatewayIn), a.command) })
}

// travel takes a message half a round trip further; a proxy works for each message, too.
func (a *answer) travel(then func()) {
	u := a.u
	if !u.tenant.remote {
		a.c.wait(u.w.cfg.Load.Line/2, then)
		return
	}
	home := u.w.cells[(u.tenant.cell+1)%len(u.w.cells)] // of the gateway that proxies
	a.c.wait((u.w.cfg.Load.Line+u.w.cfg.Load.RemoteLine)/2, func() {
		if !home.lost {
			home.node(partGateway, u.key).do(u.r.exponential(a.c.costs.GatewayOut), nil)
		}
		then()
	})
}

// command is the part of the services: they accept the message and send a job.
func (a *answer) command() {
	c, r := a.c, a.u.r
	c.store(r, a.u.key+1, func() {
		c.node(partService, a.u.key).do(r.exponential(c.costs.Service), func() {
			a.write(func() { // message.received
				a.write(func() { // run.started
					c.store(r, a.u.key+2, func() { c.node(partJobs, 0).hold(a.job) })
				})
			})
		})
	})
	if c.costs.Beside > 0 {
		c.node(partNATS, a.u.key).do(r.exponential(c.costs.Beside), nil)
	}
}

// job is the part of the worker: it claims the job and asks the model.
func (a *answer) job(done func()) {
	a.done = done
	c, l := a.c, a.u.w.cfg.Load
	c.idlest(partWorker).do(a.u.r.exponential(c.costs.Worker), func() {
		a.write(func() { // job.started
			a.write(func() { // message.started
				a.waited = a.u.own.logNormal(l.FirstToken, l.Sigma)
				a.model = a.waited
				c.wait(a.waited, func() { a.piece(l.Pieces) })
			})
		})
	})
}

// piece takes a piece from the model, and plans the next one.
func (a *answer) piece(left int) {
	a.gathered++
	a.complete = left <= 1
	a.flush()
	if !a.complete {
		d := a.u.w.cfg.Load.PieceEvery
		a.model += d
		a.c.wait(d, func() { a.piece(left - 1) })
	}
}

// flush appends the pieces that have gathered. A log has one append in flight: pieces that come meanwhile share the next one.
func (a *answer) flush() {
	if a.writing {
		return
	}
	a.writing = true
	if linger := a.c.shape.Linger; linger > 0 && a.spoke && !a.complete {
		a.c.wait(linger, a.append)
		return
	}
	a.append()
}

func (a *answer) append() {
	a.gathered, a.spoke = 0, true
	a.c.idlest(partWorker).do(a.u.r.exponential(a.c.costs.Piece), func() {
		last := a.complete && a.gathered == 0
		a.c.node(partService, a.u.key).do(a.u.r.exponential(a.c.costs.Watch), nil)
		a.write(func() {
			a.writing = false
			switch {
			case last:
				a.end()
			case a.gathered > 0 || a.complete:
				a.flush()
			}
		})
	})
}

// end closes the message and the run.
func (a *answer) end() {
	c := a.c
	c.idlest(partWorker).do(a.u.r.exponential(c.costs.Worker), func() {
		a.write(func() { // message.completed
			a.done()
			c.node(partService, a.u.key).do(a.u.r.exponential(c.costs.Service), func() {
				a.write(nil) // run.completed
			})
		})
	})
}

// write appends an event, which gateways show to the user and to further viewers. The last event of a run has nothing after it.
func (a *answer) write(then func()) {
	a.c.store(a.u.r, a.u.key, func() {
		streaming, ends := a.spoke, then == nil
		for n := range a.u.w.cfg.Load.Viewers {
			a.c.node(partGateway, a.u.key+n+1).do(a.u.r.exponential(a.c.costs.GatewayOut), nil)
		}
		a.c.frames += 1 + a.u.w.cfg.Load.Viewers
		a.c.node(partGateway, a.u.key).do(a.u.r.exponential(a.c.costs.GatewayOut), func() {
			a.travel(func() { a.arrive(streaming, ends) })
		})
		if then != nil {
			then()
		}
	})
}

// arrive counts a frame that the user got.
func (a *answer) arrive(streaming, ends bool) {
	w := a.u.w
	if streaming && !a.first {
		a.first = true
		w.tokens = append(w.tokens, sample{w.e.now, w.e.now - a.began, w.e.now - a.began - a.waited})
	}
	if ends && a.u.current == a {
		w.waiting(-1)
		w.answers = append(w.answers, sample{w.e.now, w.e.now - a.began, w.e.now - a.began - a.model})
		a.u.tenant.answered++
		a.u.think()
	}
}

// fail ends an answer that its cell will never give.
func (a *answer) fail() {
	if a.u.current != a {
		return
	}
	a.u.w.waiting(-1)
	a.u.w.failed++
	a.u.tenant.failed++
	a.u.think()
}
