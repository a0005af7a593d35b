// Package registry lists the agents, providers and clients of the swarm: those that are live, by the directory, and those
// that were, by its bucket.
package registry

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/directory"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/task/roster"
)

// Registry is the roster of one process, which follows the directory and the bucket. It is safe for concurrent use,
// but for Open and Close.
type Registry struct {
	*roster.Roster
	dir     *directory.Directory
	entries *entries
	unwatch func()
}

// New returns a registry that follows nothing yet. load returns how many tasks an agent has for a tenant, and when it
// last ended one; it must not call the registry.
func New(d *directory.Directory, load func(t id.Tenant, agent string) (tasks int, idle time.Time)) *Registry {
	r := roster.New(load)
	return &Registry{Roster: r, dir: d, entries: newEntries(r)}
}

// Open reads the bucket, and begins to follow it and the directory.
func (r *Registry) Open(ctx context.Context, conn *bus.Conn, log zerolog.Logger) error {
	r.Bulk(true)
	defer r.Bulk(false)
	if err := r.entries.open(ctx, conn, log); err != nil {
		return err
	}
	r.unwatch = r.dir.Each(r.Member)
	return nil
}

// Close may be called more than once, and also if Open was not.
func (r *Registry) Close() {
	if r.unwatch != nil {
		r.unwatch()
	}
	r.entries.close()
}

// Agent returns an agent of the directory: one that has a connection, or whose place is kept for it.
func (r *Registry) Agent(t id.Tenant, agent string) (cmd.Participant, bool) {
	return r.Online(roster.Key{Tenant: t, Kind: cmd.ParticipantAgent, ID: agent})
}

// Away reports whether an agent has no connection, but its place is kept for it.
func (r *Registry) Away(t id.Tenant, agent string) bool {
	p, there := r.Agent(t, agent)
	return there && !p.Online
}

// Note stores a participant in the bucket, in the form that it has when it is away. It writes a known participant again
// only if again is set, which renews the entry. It fails with BusUnavailable if the bucket does not take it. Open must
// have returned without an error.
func (r *Registry) Note(ctx context.Context, p cmd.Participant, again bool) error {
	return r.entries.note(ctx, p, again)
}
