package request

import "sync"

// Pool runs jobs in the order of submission, a bounded number at a time. It has goroutines only while jobs wait or run.
type Pool struct {
	Limit int
	Go    func(func()) // runs a function on a goroutine

	mu      sync.Mutex
	queue   []func()
	running int
	closed  bool
	idle    sync.WaitGroup
}

// Submit queues the job, or drops it if the pool is closed. It never blocks.
func (p *Pool) Submit(job func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.queue = append(p.queue, job)
	if p.running < p.Limit {
		p.running++
		p.idle.Add(1)
		p.Go(p.work)
	}
}

func (p *Pool) work() {
	defer p.idle.Done()
	for {
		job := p.take()
		if job == nil {
			return
		}
		job()
	}
}

func (p *Pool) take() func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 || p.closed {
		p.running--
		return nil
	}
	job := p.queue[0]
	p.queue[0] = nil
	p.queue = p.queue[1:]
	return job
}

// Close drops queued jobs and waits for running ones.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed, p.queue = true, nil
	p.mu.Unlock()
	p.idle.Wait()
}
