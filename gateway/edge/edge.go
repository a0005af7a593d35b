// Package edge is the client of a gateway, whatever its transport and protocol: who it is, what it may do and see, and what the
// audit log has about it.
//
// Client.Do is the one way in which a client has anything done, and Client.Ask the one in which it is told anything by a service. A
// rule of authority is one function (Rule), which holds for every protocol at once. A log that a client may not see does not exist for
// it: Client.Ends and Client.Sees answer for a hidden log exactly as for a missing one.
package edge

import (
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/sight"
	"github.com/waggle-dev/waggle/internal/signature"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Edge is what the clients of a gateway share. Its fields do not change once the first client exists.
type Edge struct {
	Name   id.Name // of the gateway's instance
	Source string  // of its commands and notices
	Clock  func() time.Time
	Logger zerolog.Logger

	Bus        *bus.Conn       // nil: taken to be reachable
	Commands   *command.Sender // signs
	Log        *eventlog.Store
	Streams    *stream.Source
	Sight      *sight.Sight // nil: every principal sees all of its tenant
	Recipients *Recipients
	Signer     *signature.Signer // of requests; nil: they leave unsigned
	Audit      *audit.Writer     // nil: nothing is recorded
	Room       *answer.Room      // bounds the bytes of large answers; nil: they have no bound

	// MaxWait is how long a request waits for its command to be carried out or refused; zero = DefaultMaxWait.
	MaxWait time.Duration
	// Rules are those of this installation. They come after the rules that hold everywhere.
	Rules []Rule
}

// NewID returns a fresh id, legal as a subject token.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// maxClientID bounds the ids that clients give to what they ask for.
const maxClientID = 200

// CommandID returns the id of the command that a client's id for it stands for, in a place that the parts name: a repeat
// is the same command. Without a client's id it is a new one. The error is a *fault.Fault.
func CommandID(given string, parts ...string) (string, error) {
	switch {
	case given == "":
		return uuid.NewString(), nil
	case len(given) > maxClientID:
		return "", fault.Newf(fault.InvalidField, "id must be at most %d bytes.", maxClientID).At("id")
	}
	return id.EntityFromExternal(strings.Join(append(parts, given), "\x00")).String(), nil
}

// Reachable reports whether the bus can be reached.
func (e *Edge) Reachable() bool { return e.Bus == nil || e.Bus.Up() }
