package ledger

import (
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/eventlog/index"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Follower returns what keeps the index of the kind up to date while this replica of the service owns it: one of the
// replicas writes it.
func Follower(deps Deps, service id.Name, cfg index.Config) *index.Follower {
	// It stands for the index among the keys that the replicas share.
	key := subject.Command{Service: service, Tenant: id.DefaultTenant, Key: id.EntityFromExternal("index"), Verb: id.MustName("index")}
	cfg.Conn, cfg.Logger, cfg.Watch = deps.Conn, deps.Logger, deps.Directory.Watch
	if cfg.Index == nil {
		cfg.Index = index.New(deps.Conn, deps.Log)
	}
	cfg.Owner = func() bool {
		return command.Owns(deps.Conn.Partitions(), deps.Instance, deps.Directory.Members(directory.WhatService, service), key)
	}
	return index.NewFollower(cfg)
}
