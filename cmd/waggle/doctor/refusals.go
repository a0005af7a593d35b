package doctor

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/internal/bus"
)

// refusals collects the requests that the server refuses to the doctor.
type refusals struct {
	mu   sync.Mutex
	said []string
}

func (r *refusals) watch(conn *bus.Conn) {
	conn.NATS().SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if !errors.Is(err, nats.ErrPermissionViolation) {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.said = append(r.said, strings.TrimPrefix(err.Error(), "nats: "))
	})
}

// any reports whether the server refused a request.
func (r *refusals) any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.said) > 0
}

// permissions reports the refusals of all other checks.
func (r *refusals) permissions() []Finding {
	const what = "permissions"
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.said) == 0 {
		return one(OK, what, "this user may read everything that was examined", "")
	}
	slices.Sort(r.said)
	return one(Warn, what, strings.Join(slices.Compact(r.said), "\n"),
		"give the doctor the user operator (nats.nkey: operator.nk), and the servers the current deploy/nats/accounts.conf")
}
