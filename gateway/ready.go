package gateway

import (
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// needed are the services without which no message of a client is answered.
var needed = []id.Name{id.MustName("session"), id.MustName("agent"), id.MustName("tools")}

// answerable reports whether somebody is there to answer.
func (s *Server) answerable() bool {
	if s.dep.Directory == nil {
		return true
	}
	for _, name := range needed {
		if len(s.dep.Directory.Members(directory.WhatService, name)) == 0 {
			return false
		}
	}
	return true
}

// membersChanged lets the connections that wait for services look again. It is
// called by the directory and must not block.
func (s *Server) membersChanged() {
	if !s.answerable() {
		return
	}
	for _, c := range s.open() {
		c.answerable()
	}
}
