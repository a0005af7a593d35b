package auth

import (
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/coreos/go-oidc/v3/oidc"
	jose "github.com/go-jose/go-jose/v4"
)

// maxJWKS bounds a key set, in bytes. Large issuers publish about ten keys of 2 KB.
const maxJWKS = 1 << 20

// thumbprint identifies a public key whatever its kid (RFC 7638, SHA-256).
type thumbprint [32]byte

// signingKey is a public key of a key set.
type signingKey struct {
	public crypto.PublicKey
	kid    string
	print  thumbprint
}

// errNoKeys reports a JWK set that holds nothing which could sign a token.
var errNoKeys = errors.New("no public key for signatures")

// parseJWKS returns the signing keys of a JWK set. It skips keys that cannot sign a token (for encryption, of an
// unknown kind), as RFC 7517 requires; secret keys are an error, because they do not belong there.
func parseJWKS(doc []byte) ([]signingKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(doc, &set); err != nil {
		return nil, fmt.Errorf("not a JWK set: %w", err)
	}
	if set.Keys == nil {
		return nil, errors.New("not a JWK set: it has no list keys")
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
		return nil, errNoKeys
	}
	return out, nil
}

// errNoKey reports a signature that none of the issuer's keys has made.
var errNoKey = errors.New("no key of the issuer fits the signature")

// verify returns the payload of a token that one of the keys has signed, and records the key in the attempt of ctx. It tries
// the keys whose kid matches that of the token; keys and tokens without a kid match all.
func verify(ctx context.Context, keys []signingKey, jwt, kid string) ([]byte, error) {
	for _, k := range keys {
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
	return nil, errNoKey
}

// contains reports whether the key is among the keys.
func contains(keys []signingKey, key thumbprint) bool {
	return slices.ContainsFunc(keys, func(k signingKey) bool { return k.print == key })
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
