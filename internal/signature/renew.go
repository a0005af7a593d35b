package signature

import "github.com/waggle-dev/waggle/proto-schemas/command"

// Renew signs a command anew that a gateway has signed before, however long ago: a person wanted it, and it is sent again
// unchanged. It refuses all others, which anything that can write a dead letter could have made up. A nil Signer leaves
// the command as it is.
func (s *Signer) Renew(v *Verifier, c *command.Command) error {
	switch {
	case s == nil || c.Signature == "":
		return nil
	case !v.Signed(*c):
		return errUnsigned
	}
	return s.Sign(c)
}
