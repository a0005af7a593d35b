package worker

import (
	"context"
	"strconv"
	"strings"
	"time"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/worker/card"
)

const (
	// passPause is the pause before a worker passes on a job that only other workers can do. The
	// bus picks workers at random: with one of two able that takes 200 ms on average, with one of
	// ten a second, and a waiting job causes little load.
	passPause = 100 * time.Millisecond
	// defaultPasses is how often a job is passed on while no worker is known that can do it:
	// for a minute, twice the time after which a dead worker is known to be gone, so that
	// the last one of its kind may be restarted.
	defaultPasses = 600
	// passed separates the id of a work item from the number of times it was passed on.
	passed = ".pass-"
)

// passOn passes a work item to another worker if this one cannot ask the model of the member's
// definition. It reports whether it did. If it did not, either this worker can do the job or no
// worker can.
func (s *Service) passOn(ctx context.Context, item cmd.Command, spec string) (bool, error) {
	m := s.deps.Model
	if model.Serves(m.Name(), model.Providers(m), spec) {
		return false, nil
	}
	first, times := passes(item.ID)
	if there, _ := card.Serves(s.deps.Directory, spec); !there && times >= s.cfg.MaxPasses {
		return false, nil
	}
	pause := time.NewTimer(passPause)
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-pause.C:
	}
	item.ID = first + passed + strconv.Itoa(times+1) // the time stays, by which the log knows the item
	return true, s.deps.Commands.Send(ctx, item)
}

// passes returns the id that a work item had at first, and how often it was passed on.
func passes(itemID string) (first string, times int) {
	if i := strings.LastIndex(itemID, passed); i >= 0 {
		if n, err := strconv.Atoi(itemID[i+len(passed):]); err == nil {
			return itemID[:i], n
		}
	}
	return itemID, 0
}
