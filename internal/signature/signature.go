// Package signature signs the commands that gateways send for people, and verifies them. A gateway alone has the signing
// key; services and workers know its public keys. So no other role's credentials for the bus let a thief speak for a
// person.
//
// A signature covers the service, verb, tenant, key, member, principal with its right, id, request id, time and data of a command.
//
// No single server dates a command: a signature is stale only if the bus' clock says so when the command is handled, and
// the timestamp of the message, which the leader of the stream writes, says so as well. A leader whose clock is wrong would
// otherwise have every command of a person refused.
package signature

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// domain separates these signatures from any other use of the key, and versions the covered fields.
const domain = "waggle command 1"

// Prefix is the kind of nkey that signs commands. NATS users have another kind, so that neither key passes for the
// other.
const Prefix = nkeys.PrefixByteAccount

// Signer signs commands. It is safe for concurrent use.
type Signer struct {
	key atomic.Pointer[ed25519.PrivateKey]
	now func() time.Time
}

// NewSigner returns a signer with the key of the seed. now is the clock that the signing times come from; nil =
// time.Now.
func NewSigner(seed []byte, now func() time.Time) (*Signer, error) {
	if now == nil {
		now = time.Now
	}
	s := &Signer{now: now}
	return s, s.Replace(seed)
}

// Replace makes the signer use the key of another seed.
func (s *Signer) Replace(seed []byte) error {
	prefix, raw, err := nkeys.DecodeSeed(seed)
	if err != nil || prefix != Prefix {
		return errors.New("the seed of the signing key is not valid: it begins with SA, and \"waggle keys\" makes it")
	}
	key := ed25519.NewKeyFromSeed(raw)
	s.key.Store(&key)
	return nil
}

// Public returns the public key in the form that NewVerifier takes.
func (s *Signer) Public() (string, error) {
	public, _ := (*s.key.Load()).Public().(ed25519.PublicKey) // always has this type
	out, err := nkeys.Encode(Prefix, public)
	return string(out), err
}

// Sign sets the time and the signature of the command. It brings the data into the form in which the envelope carries
// it. No covered field may change afterwards.
func (s *Signer) Sign(c *command.Command) error {
	if len(c.Data) > 0 {
		data, err := json.Marshal(c.Data)
		if err != nil {
			return fmt.Errorf("sign command %s.%s: %w", c.Service, c.Verb, err)
		}
		c.Data = data
	}
	c.Time, c.Origin, c.Signature = s.now().UTC(), nil, ""
	sum := sha256.Sum256(c.Data)
	text := covered(c.Tenant, proofOf(*c), sum)
	c.Signature = base64.RawStdEncoding.EncodeToString(ed25519.Sign(*s.key.Load(), text))
	return nil
}

// proofOf returns the covered fields of a command, without its data.
func proofOf(c command.Command) event.Proof {
	return event.Proof{
		Service: c.Service.String(), Verb: c.Verb.String(), Key: c.Key.String(), Member: c.Member, Principal: c.Principal, Operator: c.Operator,
		CommandID: c.ID, Request: c.Request, Time: c.Time, Signature: c.Signature,
	}
}

// covered returns the signed text: every field with its length, so that no two commands have the same text.
func covered(tenant id.Tenant, p event.Proof, data [sha256.Size]byte) []byte {
	fields := [...]string{
		domain, p.Service, p.Verb, tenant.String(), p.Key, p.Member, p.Principal, strconv.FormatBool(p.Operator), p.CommandID, p.Request,
		p.Time.UTC().Format(time.RFC3339Nano),
	}
	size := len(data)
	for _, f := range fields {
		size += 4 + len(f)
	}
	out := make([]byte, 0, size)
	for _, f := range fields {
		out = binary.BigEndian.AppendUint32(out, uint32(len(f))) //nolint:gosec // far below 4 GiB
		out = append(out, f...)
	}
	return append(out, data[:]...)
}

// Verifier knows the public keys of the gateways. A nil Verifier and one without keys accept nothing. It is safe for
// concurrent use.
type Verifier struct {
	keys      atomic.Pointer[[]ed25519.PublicKey]
	unchecked bool
}

// NewVerifier returns a verifier that accepts signatures of any of the public keys.
func NewVerifier(public ...string) (*Verifier, error) {
	v := &Verifier{}
	return v, v.Replace(public...)
}

// Unchecked returns a verifier that accepts everything, for tests of services that run without a gateway.
func Unchecked() *Verifier { return &Verifier{unchecked: true} }

// Replace makes the verifier accept signatures of these keys only. After an error the earlier keys stay.
func (v *Verifier) Replace(public ...string) error {
	keys := make([]ed25519.PublicKey, len(public))
	for i, p := range public {
		raw, err := nkeys.Decode(Prefix, []byte(strings.TrimSpace(p)))
		if err != nil || len(raw) != ed25519.PublicKeySize {
			return fmt.Errorf("%q is not a gateway's public key: it begins with A, and \"waggle keys\" makes it", p)
		}
		keys[i] = raw
	}
	v.keys.Store(&keys)
	return nil
}

// valid reports whether a gateway has signed the fields for the tenant.
func (v *Verifier) valid(tenant id.Tenant, p event.Proof, data [sha256.Size]byte) bool {
	if v == nil {
		return false
	}
	signature, err := base64.RawStdEncoding.DecodeString(p.Signature)
	keys := v.keys.Load()
	if err != nil || len(signature) != ed25519.SignatureSize || keys == nil {
		return false
	}
	text := covered(tenant, p, data)
	for _, k := range *keys {
		if ed25519.Verify(k, text, signature) {
			return true
		}
	}
	return false
}

// Signed reports whether a gateway has signed the command as it is.
func (v *Verifier) Signed(c command.Command) bool {
	return v.valid(c.Tenant, proofOf(c), sha256.Sum256(c.Data))
}

// Proves reports whether a gateway has signed the fields of the proof for the tenant.
func (v *Verifier) Proves(tenant id.Tenant, p *event.Proof) bool {
	if p == nil {
		return false
	}
	sum := sha256.Sum256(p.Data)
	if p.SHA256 != "" {
		raw, err := hex.DecodeString(p.SHA256)
		if err != nil || len(raw) != len(sum) || len(p.Data) > 0 {
			return false
		}
		copy(sum[:], raw)
	}
	return v.valid(tenant, *p, sum)
}
