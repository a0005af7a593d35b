// Package folder names the folders of tenants.
package folder

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Name returns the name of a tenant's folder. Tenants that differ in case alone have folders that differ more: some disks
// do not distinguish case. No name begins with a tilde.
func Name(t id.Tenant) string {
	name := t.String()
	lower := strings.ToLower(name)
	if lower == name {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return lower + "~" + hex.EncodeToString(sum[:6])
}
