package apitest

import (
	"context"

	"github.com/waggle-dev/waggle/internal/auth"
)

// Anywhere authenticates tokens alike from all addresses.
type Anywhere struct{ Auth auth.Authenticator }

// Authenticate implements api.Authenticator.
func (a Anywhere) Authenticate(ctx context.Context, _, token string) (auth.Principal, error) {
	return a.Auth.Authenticate(ctx, token)
}
