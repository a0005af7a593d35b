package upstream

import (
	"net/url"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Provider names a server for event.PassBack.
func Provider(protocol string, u *url.URL) string { return protocol + "@" + u.Host }

// PassBack returns what a provider wants back with a message, within bounds.
func PassBack(provider string, data []byte) (*event.PassBack, error) {
	if len(data) > event.MaxPassBack {
		return nil, BadReply("the provider wants %d bytes back with its message; at most %d are kept", len(data), event.MaxPassBack)
	}
	return &event.PassBack{Provider: provider, Data: data}, nil
}
