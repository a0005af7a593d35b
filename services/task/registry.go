package task

import (
	"context"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/directory"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/task/roster"
)

// registry knows the agents, services and clients that are live, by the directory, and
// those that were, by its bucket. It is safe for concurrent use.
type registry struct {
	*roster.Roster
	dir     *directory.Directory
	bucket  *registryBucket
	unwatch func()
}

func newRegistry(d *directory.Directory, x *index) *registry {
	c := &registry{Roster: roster.New(x.load), dir: d}
	c.bucket = newRegistryBucket(c.Roster)
	x.moved = func(a agentKey) { c.Busy(a.tenant, a.agent) }
	return c
}

// open begins to follow directory and registry.
func (c *registry) open(ctx context.Context, conn *bus.Conn, log zerolog.Logger) error {
	c.Bulk(true)
	defer c.Bulk(false)
	if err := c.bucket.open(ctx, conn, log); err != nil {
		return err
	}
	c.unwatch = c.dir.Each(c.Member)
	return nil
}

// close may be called more than once, and also if open was not.
func (c *registry) close() {
	if c.unwatch != nil {
		c.unwatch()
	}
	c.bucket.close()
}

// agent returns an agent of the directory.
func (c *registry) agent(t id.Tenant, agent string) (cmd.Participant, bool) {
	return c.Online(roster.Key{Tenant: t, Kind: cmd.ParticipantAgent, ID: agent})
}

// away reports whether an agent has no connection, but its place is kept for it.
func (c *registry) away(t id.Tenant, agent string) bool {
	p, there := c.agent(t, agent)
	return there && !p.Online
}
