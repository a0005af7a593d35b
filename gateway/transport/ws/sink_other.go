//go:build !unix

package ws

import "net"

// attempt has nothing to keep where no write can be made without blocking.
type attempt struct{}

func newAttempt() *attempt { return &attempt{} }

func sinkOf(nc net.Conn) sink { return plain{nc} }
