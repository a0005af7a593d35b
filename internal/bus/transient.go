package bus

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Codes of server errors that nats.go does not name.
const (
	codeNoPeers     jetstream.ErrorCode = 10005 // servers for the replicas are missing, perhaps still starting
	codeNoResources jetstream.ErrorCode = 10023 // the disk or the account is too small
)

// transient reports whether err may pass by itself: a missing leader, missing servers, or another process that
// creates the same stream at this moment.
func transient(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		switch api.ErrorCode {
		case codeNoResources:
			return false
		case codeNoPeers, jetstream.JSErrCodeStreamNameInUse:
			return true
		}
		return api.Code == 503
	}
	for _, passing := range []error{
		nats.ErrTimeout, nats.ErrNoResponders, context.DeadlineExceeded, nats.ErrDisconnected,
		nats.ErrReconnectBufExceeded, nats.ErrConnectionReconnecting, jetstream.ErrNoStreamResponse,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}
