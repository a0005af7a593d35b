package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
)

// mostTenants bounds the tenants whose tools a client or a server keeps. Of others it sends them all.
const mostTenants = 256

// offer is what the models of a tenant are offered.
type offer struct {
	tools  []tools.Tool
	digest string // of the tools, by which client and server know that they mean the same
}

// offers are the last offers of tenants. A worker asks for each job; a server that knows that the worker has the tools does
// not send them again. It is safe for concurrent use.
type offers struct {
	last *lru.Cache[id.Tenant, offer]
}

func newOffers() offers {
	last, err := lru.New[id.Tenant, offer](mostTenants)
	if err != nil {
		panic(err) // the size is not positive
	}
	return offers{last}
}

// digest returns the digest of the tools of a tenant. It keeps the list.
func (o offers) digest(tenant id.Tenant, list []tools.Tool) (string, error) {
	if was, ok := o.last.Get(tenant); ok && reflect.DeepEqual(was.tools, list) {
		return was.digest, nil
	}
	b, err := json.Marshal(list)
	if err != nil {
		return "", fmt.Errorf("encode tools of tenant %s: %w", tenant, err)
	}
	sum := sha256.Sum256(b)
	now := offer{list, hex.EncodeToString(sum[:])}
	o.last.Add(tenant, now)
	return now.digest, nil
}
