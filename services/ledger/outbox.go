package ledger

import (
	"sync"
	"time"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
)

// sentKept bounds the keys that are kept of one log.
const sentKept = 1000

// Outbox keeps which commands this process has sent because of a log. The commands
// themselves follow from the state, so another process sends the same ones again: their
// ids make repeats harmless. It is safe for concurrent use; its zero value is empty.
type Outbox struct {
	mu   sync.Mutex
	done map[string]bool      // by Once and Done
	sent map[string]time.Time // by Due and Sent
}

func (o *Outbox) clear() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.done, o.sent = nil, nil
}

// trim discards the keys if they are too many; their commands are then sent again.
func (o *Outbox) trim() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.done) > sentKept {
		o.done = nil
	}
}

// Has reports whether the key is done.
func (o *Outbox) Has(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.done[key]
}

// Done notes that the key is done.
func (o *Outbox) Done(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done == nil {
		o.done = map[string]bool{}
	}
	o.done[key] = true
}

// Once calls do unless the key is done, and notes it as done if do returns nil.
func (o *Outbox) Once(key string, do func() error) error {
	if o.Has(key) {
		return nil
	}
	if err := do(); err != nil {
		return err
	}
	o.Done(key)
	return nil
}

// Due returns those of all commands that follow from the state which were not sent within
// the pause before now. It forgets commands that no longer follow.
func (o *Outbox) Due(all []cmd.Command, now time.Time, pause time.Duration) []cmd.Command {
	o.mu.Lock()
	defer o.mu.Unlock()
	var due []cmd.Command
	still := map[string]time.Time{}
	for _, c := range all {
		sent, was := o.sent[keyOf(c)]
		if was {
			still[keyOf(c)] = sent
		}
		if !was || now.Sub(sent) >= pause {
			due = append(due, c)
		}
	}
	o.sent = still
	return due
}

// Sent notes when a command was sent.
func (o *Outbox) Sent(c cmd.Command, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sent == nil {
		o.sent = map[string]time.Time{}
	}
	o.sent[keyOf(c)] = at
}

func keyOf(c cmd.Command) string {
	return c.Service.String() + "." + c.Key.String() + "." + c.Verb.String() + "." + c.ID
}

// move gives the keys to an empty outbox.
func (o *Outbox) move(to *Outbox) {
	o.mu.Lock()
	defer o.mu.Unlock()
	to.mu.Lock()
	defer to.mu.Unlock()
	to.done, to.sent, o.done, o.sent = o.done, o.sent, nil, nil
}
