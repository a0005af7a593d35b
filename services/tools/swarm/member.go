package swarm

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/command"
)

var errOtherKind = errors.New("entry is not a service of a tenant")

// member is one connection of a service, from its directory entry. It is immutable.
type member struct {
	key         string
	id          string // of this connection: a reconnected service has another
	entry       []byte // the entry's text
	participant command.Participant
}

// newMember reads an entry of the directory.
func newMember(key string, m directory.Member) (*member, error) {
	n := &member{key: key, entry: m.Data}
	if err := json.Unmarshal(m.Data, &n.participant); err != nil {
		return nil, err
	}
	p := &n.participant
	if p.Kind != command.ParticipantService || p.ID == "" || p.Tenant.IsZero() {
		return nil, errOtherKind
	}
	n.id = strings.Join([]string{key, p.Gateway, p.Connection}, "|")
	return n, nil
}
