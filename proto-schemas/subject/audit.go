package subject

import (
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// auditNoTenant stands for an unknown tenant: that of a refused credential. It cannot be a tenant's name, because the
// tenants' alphabet does not contain it.
const auditNoTenant = "$"

// Audit returns the subject of a record of the audit log. The zero tenant means unknown.
func Audit(t id.Tenant, action id.Name) string {
	return "audit." + auditTenant(t) + "." + action.String()
}

// AuditOf returns the filter of all records of a tenant; for the zero tenant those of unknown tenants.
func AuditOf(t id.Tenant) string { return "audit." + auditTenant(t) + ".*" }

// AuditActions returns the filter of all records of an action, of all tenants.
func AuditActions(action id.Name) string { return "audit.*." + action.String() }

func auditTenant(t id.Tenant) string {
	if t.IsZero() {
		return auditNoTenant
	}
	return t.String()
}

// ParseAudit parses a subject under audit. .
func ParseAudit(s string) (t id.Tenant, action id.Name, err error) {
	parts := strings.Split(s, ".")
	if len(parts) != 3 || parts[0] != "audit" {
		return t, action, invalid("audit", s)
	}
	var f failures
	if parts[1] != auditNoTenant {
		t = token(&f, id.ParseTenant, parts[1])
	}
	action = token(&f, id.ParseName, parts[2])
	return t, action, f.err()
}

// Quota addresses one holding in the ledger of quotas: the amount of a resource that a holder (a gateway, a worker, a
// session) has for a principal of a tenant.
type Quota struct {
	Tenant    id.Tenant
	Resource  id.Name
	Principal id.Entity // id.EntityFromExternal of the subject
	Holder    id.Entity
}

// Key returns the KV key: <tenant>.<resource>.<principal>.<holder>.
func (q Quota) Key() string {
	return q.Tenant.String() + "." + q.Resource.String() + "." + q.Principal.String() + "." + q.Holder.String()
}

// QuotaKeys returns the KV filter of all holdings of a resource, in all tenants.
func QuotaKeys(resource id.Name) string { return "*." + resource.String() + ".*.*" }

// QuotaKeysOf returns the KV filter of all holdings of a resource of a tenant.
func QuotaKeysOf(t id.Tenant, resource id.Name) string {
	return t.String() + "." + resource.String() + ".*.*"
}

// ParseQuotaKey parses the form that Key returns.
func ParseQuotaKey(s string) (Quota, error) {
	parts := strings.Split(s, ".")
	if len(parts) != 4 {
		return Quota{}, invalid("quota", s)
	}
	var f failures
	q := Quota{
		Tenant: token(&f, id.ParseTenant, parts[0]), Resource: token(&f, id.ParseName, parts[1]),
		Principal: token(&f, id.ParseEntity, parts[2]), Holder: token(&f, id.ParseEntity, parts[3]),
	}
	if err := f.err(); err != nil {
		return Quota{}, err
	}
	return q, nil
}
