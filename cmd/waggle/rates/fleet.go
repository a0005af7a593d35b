package rates

import (
	"context"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/internal/rpc"
	"github.com/waggle-dev/waggle/proto-schemas/api"
)

const (
	// maxWait bounds the wait for the answers of other processes.
	maxWait = time.Second
	// goodFor is how long a list is good enough for others who ask.
	goodFor = time.Second
)

// Fleet gathers the rates of all processes for those who ask this one. It is safe for concurrent use.
type Fleet struct {
	own    *Rates
	self   api.RateProcess
	others func() []api.RateProcess

	mu   sync.Mutex // held while the processes are asked: all callers get the list of one look
	at   time.Time
	list api.RateList
}

// NewFleet returns the rates of this process and those of the others that run. others may name this process, too.
func NewFleet(own *Rates, self api.RateProcess, others func() []api.RateProcess) *Fleet {
	return &Fleet{own: own, self: self, others: others}
}

// List returns the rates of all processes together, at most one second old. It waits at most a second for processes that do not
// answer, and names them. Callers share the list.
func (f *Fleet) List() api.RateList {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.at.IsZero() && time.Since(f.at) < goodFor {
		return f.list
	}
	own := f.own.window()
	var all sum
	all.add(own)
	l := api.RateList{
		Gateway: f.self.Instance, TakenAt: own.at.UTC(), Seconds: int(Every.Seconds()),
		Processes: []api.RateProcess{f.self}, Missing: []api.RateProcess{},
	}
	others, waits := f.others(), map[string]bool{}
	for _, p := range others {
		waits[p.Instance] = true
	}
	delete(waits, f.self.Instance)
	f.ask(waits, &all)
	for _, p := range others {
		switch {
		case waits[p.Instance]:
			l.Missing = append(l.Missing, p)
		case p.Instance != f.self.Instance:
			l.Processes = append(l.Processes, p)
		}
	}
	l.Rates = all.rates()
	f.list, f.at = l, time.Now()
	return l
}

// ask adds the answers of the processes, and leaves those that have not answered in time in waits. It ignores malformed answers.
func (f *Fleet) ask(waits map[string]bool, all *sum) {
	if len(waits) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	log := f.own.conn.Logger()
	err := rpc.Gather(ctx, f.own.conn, request, nil, func(answer []byte) bool {
		w, err := decode(answer)
		if err != nil {
			log.Debug().Err(err).Msg("rates ignored: not decodable")
			return false
		}
		if waits[w.Instance] {
			delete(waits, w.Instance)
			all.add(w)
		}
		return len(waits) == 0
	})
	if err != nil {
		log.Debug().Err(err).Int("missing", len(waits)).Msg("failed to receive rates")
	}
}
