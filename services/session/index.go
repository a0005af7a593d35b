package session

import (
	"time"

	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/eventlog/index"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/ledger"
)

// indexKey stands for the index among the keys that the replicas share: one of them writes it.
var indexKey = subject.Command{
	Service: cmd.Session, Tenant: id.DefaultTenant, Key: id.EntityFromExternal("index"), Verb: id.MustName("index"),
}

// newFollower returns what keeps the index of sessions up to date while this replica owns it.
func newFollower(every time.Duration, deps ledger.Deps, x *index.Index) *index.Follower {
	return index.NewFollower(index.Config{
		Index: x, Conn: deps.Conn, Kind: id.KindSession, Logger: deps.Logger, Every: every,
		Owner: func() bool {
			return command.Owns(deps.Instance, deps.Directory.Members(directory.WhatService, cmd.Session), indexKey)
		},
		Watch: deps.Directory.Watch,
	})
}
