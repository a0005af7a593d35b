package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// recheck is the least interval between reads of a key file: a fifth of the time within which the revocation of a key must
// take effect.
const recheck = time.Second

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
		f.log.Warn().Err(err).Msg("auth.jwt.jwks_file rejected; previous keys stay in use")
	case err == nil && !bytes.Equal(before, f.seen):
		f.trouble = ""
		f.log.Info().Int("keys", len(f.keys)).Msg("auth.jwt.jwks_file reloaded")
	}
	return f.keys
}

func (f *fileKeys) knows(key thumbprint) bool {
	return contains(f.current(), key)
}

// VerifySignature implements oidc.KeySet.
func (f *fileKeys) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	kid, err := keyID(jwt)
	if err != nil {
		return nil, err
	}
	return verify(ctx, f.current(), jwt, kid)
}
