package auth

import (
	"bytes"
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	jose "github.com/go-jose/go-jose/v4"
	"github.com/rs/zerolog"
)

const (
	// recheck is the least interval between reads of a key file: a fifth of the time within which the revocation of a
	// key must take effect.
	recheck = time.Second
	// maxJWKS bounds a key set, in bytes. Large issuers publish about ten keys of 2 KB.
	maxJWKS = 1 << 20
)

// thumbprint identifies a public key whatever its kid (RFC 7638, SHA-256).
type thumbprint [32]byte

// signingKey is a public key of a key set.
type signingKey struct {
	public crypto.PublicKey
	kid    string
	print  thumbprint
}

// parseJWKS returns the signing keys of a JWK set. It skips keys that cannot sign a token (for encryption, of an
// unknown kind), as RFC 7517 requires; secret keys are an error, because they do not belong there.
func parseJWKS(doc []byte) ([]signingKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(doc, &set); err != nil {
		return nil, fmt.Errorf("not a JWK set: %w", err)
	}
	var out []signingKey
	for i, raw := range set.Keys {
		var k jose.JSONWebKey
		err := json.Unmarshal(raw, &k)
		switch {
		case errors.Is(err, jose.ErrUnsupportedKeyType):
			continue
		case err != nil:
			return nil, fmt.Errorf("keys[%d]: %w", i, err)
		case !k.IsPublic():
			return nil, fmt.Errorf("keys[%d] (kid %q) is a secret; list public keys only", i, k.KeyID)
		case k.Use != "" && k.Use != "sig":
			continue
		}
		sum, err := k.Thumbprint(crypto.SHA256)
		if err != nil {
			return nil, fmt.Errorf("keys[%d]: %w", i, err)
		}
		out = append(out, signingKey{k.Key, k.KeyID, thumbprint(sum)})
	}
	if len(out) == 0 {
		return nil, errors.New("no public key for signatures")
	}
	return out, nil
}

// fileKeys holds the keys of a file, which may change while the program runs.
type fileKeys struct {
	path string
	now  func() time.Time
	log  zerolog.Logger

	mu      sync.Mutex
	seen    []byte    // last content, valid or not
	next    time.Time // time of the next read
	trouble string    // last logged error
	keys    []signingKey
}

func newFileKeys(path string, now func() time.Time, log zerolog.Logger) (*fileKeys, error) {
	f := &fileKeys{path: path, now: now, log: log}
	if err := f.read(); err != nil {
		return nil, fmt.Errorf("auth.jwt.jwks_file: %w", err)
	}
	return f, nil
}

// read reads the file if its content has changed. After an error the old keys stay.
func (f *fileKeys) read() error {
	f.next = f.now().Add(recheck)
	file, err := os.Open(f.path)
	if err != nil {
		return err
	}
	doc, err := io.ReadAll(io.LimitReader(file, maxJWKS+1))
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if len(doc) > maxJWKS {
		return fmt.Errorf("%s is larger than %d bytes", f.path, maxJWKS)
	}
	if f.seen != nil && bytes.Equal(doc, f.seen) {
		return nil
	}
	f.seen = doc
	keys, err := parseJWKS(doc)
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.keys = keys
	return nil
}

// current returns the keys, read at most a second ago. Keys that cannot be read again (a file half written, a mount
// gone) stay valid: an outage must not look like a revocation.
func (f *fileKeys) current() []signingKey {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.now(); now.Before(f.next) && f.next.Sub(now) <= recheck {
		return f.keys
	}
	before := f.seen
	err := f.read()
	switch {
	case err != nil && err.Error() != f.trouble:
		f.trouble = err.Error()
		f.log.Warn().Err(err).Msg("reject auth.jwt.jwks_file, keep earlier keys")
	case err == nil && !bytes.Equal(before, f.seen):
		f.trouble = ""
		f.log.Info().Int("keys", len(f.keys)).Msg("reload auth.jwt.jwks_file")
	}
	return f.keys
}

func (f *fileKeys) knows(key thumbprint) bool {
	for _, k := range f.current() {
		if k.print == key {
			return true
		}
	}
	return false
}

// VerifySignature tries the keys whose kid matches that of the token; keys and tokens without a kid match all.
func (f *fileKeys) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	kid, err := keyID(jwt)
	if err != nil {
		return nil, err
	}
	for _, k := range f.current() {
		if kid != "" && k.kid != "" && kid != k.kid {
			continue
		}
		one := oidc.StaticKeySet{PublicKeys: []crypto.PublicKey{k.public}}
		payload, err := one.VerifySignature(ctx, jwt)
		if err != nil {
			continue
		}
		if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
			a.key = k.print
		}
		return payload, nil
	}
	return nil, errors.New("no key of the issuer fits the signature")
}

// keyID returns the kid of the token's header, or "".
func keyID(jwt string) (string, error) {
	all := make([]jose.SignatureAlgorithm, len(algorithms))
	for i, a := range algorithms {
		all[i] = jose.SignatureAlgorithm(a)
	}
	jws, err := jose.ParseSigned(jwt, all)
	if err != nil {
		return "", err
	}
	return jws.Signatures[0].Header.KeyID, nil
}

// algorithms are the asymmetric ones. With a symmetric one the public key of the issuer would be the secret; "none"
// does not sign.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
}

// attempt carries a keySource's results beyond the payload. They travel in the context, because go-oidc calls the
// keySource.
type attempt struct {
	key    thumbprint
	outage error
}

type attemptKey struct{}
