package subject

import (
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// AuditAll is the filter of all records of the audit log.
const AuditAll = "audit.>"

// auditNobody stands in place of the tenant where nobody knows whose it is: a credential
// that was refused. No tenant has this name, because a dot-free token of one character
// outside the tenants' alphabet cannot be parsed as one.
const auditNobody = "$"

// Audit returns the subject of a record of the audit log. The zero tenant means that
// nobody knows whose it is.
func Audit(t id.Tenant, action id.Name) string {
	return "audit." + auditTenant(t) + "." + action.String()
}

// AuditOf returns the filter of all records of a tenant; of the zero tenant those that
// are of none.
func AuditOf(t id.Tenant) string { return "audit." + auditTenant(t) + ".*" }

// AuditActions returns the filter of all records of an action, of all tenants.
func AuditActions(action id.Name) string { return "audit.*." + action.String() }

func auditTenant(t id.Tenant) string {
	if t.IsZero() {
		return auditNobody
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
	if parts[1] != auditNobody {
		t = token(&f, id.ParseTenant, parts[1])
	}
	action = token(&f, id.ParseName, parts[2])
	return t, action, f.err()
}

// Quota addresses one holding in the ledger of quotas: how much of a resource a holder
// (a gateway, a worker, a session) has for a principal of a tenant.
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
