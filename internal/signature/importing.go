package signature

import (
	"time"

	"github.com/google/uuid"

	"github.com/waggle-dev/waggle/proto-schemas/command"
)

// Import signs a request to import a state. A nil Signer leaves it unsigned.
func (s *Signer) Import(in *command.ImportRequest) error {
	if s == nil {
		return nil
	}
	in.ID = uuid.NewString()
	c := in.Command()
	if err := s.Sign(&c); err != nil {
		return err
	}
	in.Time, in.Signed, in.Signature = c.Time, c.Data, c.Signature
	return nil
}

// Import returns a fault unless a gateway has signed the request just before now.
func (v *Verifier) Import(in command.ImportRequest, now time.Time) error {
	_, err := v.Check(in.Command(), now, now)
	return err
}
