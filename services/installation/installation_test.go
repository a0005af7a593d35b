package installation_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/internal/quota"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	record "github.com/waggle-dev/waggle/proto-schemas/audit"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/installation"
)

// TestQueuesShowWhatWaits: also the queue of a service that does not run, and those that are empty.
func TestQueuesShowWhatWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *installation.Config) { c.Queues = []id.Name{cmd.Session, cmd.Worker, cmd.Pipeline} })
	q := get[wire.QueueList](r, 200, "olga", "GET", "/queues")
	require.Equal(t, []wire.Queue{{Service: "pipeline"}, {Service: "session"}, {Service: "worker"}}, q.Queues)
	require.Zero(t, q.Oldest)
	began := time.Now().Add(-time.Second)
	for n := range 3 {
		c := order("default", fmt.Sprint("m", n))
		c.Service, c.Verb = cmd.Session, cmd.Open
		require.NoError(t, r.Send.Send(r.Ctx, c))
	}
	q = get[wire.QueueList](r, 200, "olga", "GET", "/queues")
	require.Equal(t, wire.Queue{Service: "session", Waiting: 3}, q.Queues[1])
	require.WithinRange(t, q.Oldest, began, time.Now().Add(time.Second))
	get[wire.Problem](r, 403, "alice", "GET", "/queues")
	get[wire.Problem](r, 403, "vera", "GET", "/queues")
}

// TestQuotasShowTheOwnUse: everybody sees the use of the tenant and their own, operators see that of others, too.
func TestQuotasShowTheOwnUse(t *testing.T) {
	t.Parallel()
	policy := quota.Policy{Tenant: quota.Limits{Sessions: 10}, Principal: quota.Limits{Sessions: 4, Tokens: 100}}
	r := newRig(t, func(c *installation.Config) { c.Quota = policy })
	var sessions quota.Entities
	require.NoError(t, sessions.Open(r.Ctx, record.Sessions, quota.Config{Conn: r.Conn, Policy: policy}))
	t.Cleanup(sessions.Close)
	other, err := id.ParseTenant("other")
	require.NoError(t, err)
	for n, who := range []string{"alice", "alice", "alice", "bob"} {
		require.NoError(t, sessions.Hold(r.Ctx, id.DefaultTenant, who, id.EntityFromExternal(fmt.Sprint("s", n))))
	}
	require.NoError(t, sessions.Hold(r.Ctx, other, "eve", id.EntityFromExternal("e")))
	own := []wire.Quota{
		{Scope: "principal", Principal: "alice", Resource: "sessions", Used: 3, Limit: 4},
		{Scope: "tenant", Resource: "sessions", Used: 4, Limit: 10},
		{Scope: "principal", Principal: "alice", Resource: "tokens", Limit: 100, Daily: true},
	}
	require.Equal(t, own, get[wire.QuotaList](r, 200, "alice", "GET", "/quotas").Quotas)
	all := get[wire.QuotaList](r, 200, "olga", "GET", "/quotas").Quotas
	require.Contains(t, all, own[0])
	require.Contains(t, all, wire.Quota{Scope: "principal", Principal: "bob", Resource: "sessions", Used: 1, Limit: 4})
	require.Contains(t, all, wire.Quota{Scope: "principal", Principal: "olga", Resource: "sessions", Limit: 4})
	require.NotContains(t, fmt.Sprint(all), "eve")
}

// TestTheAuditLogInPages shows operators the records of their tenant.
func TestTheAuditLogInPages(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	w, err := audit.New(r.Conn, audit.Options{CloseMaxWait: time.Hour})
	require.NoError(t, err)
	other, err := id.ParseTenant("other")
	require.NoError(t, err)
	for n := range 5 {
		w.Record(record.API, id.DefaultTenant, record.Record{Principal: "olga", Verb: "POST", Entity: fmt.Sprintf("/api/v1/dead-letters/%d/resend", n)})
		w.Record(record.Command, id.DefaultTenant, record.Record{Principal: "alice", Service: "pipeline", Verb: "cancel", Entity: "s1"})
		w.Record(record.Command, other, record.Record{Principal: "eve", Entity: "s9"})
	}
	w.Close()
	first := get[wire.AuditPage](r, 200, "olga", "GET", "/audit?limit=6")
	require.Len(t, first.Records, 6)
	require.True(t, first.More)
	require.Equal(t, "command alice pipeline cancel s1", fmt.Sprint(first.Records[0].Action, " ", first.Records[0].Principal, " ", first.Records[0].Service, " ", first.Records[0].Verb, " ", first.Records[0].Entity))
	rest := get[wire.AuditPage](r, 200, "olga", "GET", "/audit?limit=6&before="+first.Next)
	require.Len(t, rest.Records, 4)
	require.False(t, rest.More)
	require.NotContains(t, fmt.Sprint(first, rest), "eve")
	require.Len(t, get[wire.AuditPage](r, 200, "olga", "GET", "/audit?principal=alice").Records, 5)
	require.Len(t, get[wire.AuditPage](r, 200, "olga", "GET", "/audit?action=api-call&entity=/api/v1/dead-letters/3/resend").Records, 1)
	require.Len(t, get[wire.AuditPage](r, 200, "otto", "GET", "/audit").Records, 5)
	for _, who := range []string{"alice", "vera"} {
		get[wire.Problem](r, 403, who, "GET", "/audit")
	}
	for _, bad := range []string{"limit=0", "limit=501", "before=x", "action=a.b"} {
		get[wire.Problem](r, 422, "olga", "GET", "/audit?"+bad)
	}
}

// TestTheAuditLogIsVerified: as a whole, part by part, by operators. A fault names its record, and no other tenant.
func TestTheAuditLogIsVerified(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	other, err := id.ParseTenant("other")
	require.NoError(t, err)
	w, err := audit.New(r.Conn, audit.Options{Waiting: 20_000, CloseMaxWait: time.Hour})
	require.NoError(t, err)
	const records = 10_500 // more than a part
	for n := range records {
		w.Record(record.Command, []id.Tenant{id.DefaultTenant, other}[n%2], record.Record{Entity: fmt.Sprint(n)})
	}
	w.Close()
	verify := func(next string) wire.AuditCheck {
		body, err := json.Marshal(wire.VerifyAudit{Next: next})
		require.NoError(t, err)
		return get[wire.AuditCheck](r, 200, "olga", "POST", "/audit/verify", string(body))
	}
	first := verify("")
	require.NotEmpty(t, first.Next)
	require.Equal(t, 10_000, first.Records)
	whole := verify(first.Next)
	require.Empty(t, whole.Next)
	require.Equal(t, []any{records, uint64(records), uint64(1), uint64(records), 1, 0}, []any{whole.Records, whole.Of, whole.First, whole.Last, whole.Chains, len(whole.Faults)})
	require.WithinRange(t, whole.Newest, whole.Oldest, time.Now())

	copied, err := r.Conn.JS().Stream(r.Ctx, subject.StreamAudit)
	require.NoError(t, err)
	m, err := copied.GetMsg(r.Ctx, 7)
	require.NoError(t, err)
	_, err = r.Conn.JS().Publish(r.Ctx, subject.Audit(other, record.Decided), m.Data)
	require.NoError(t, err)
	broken := verify(verify("").Next)
	require.Equal(t, uint64(records+1), broken.Faults[0].Seq)
	require.Contains(t, fmt.Sprint(broken.Faults), "was changed")
	require.Contains(t, fmt.Sprint(broken.Faults), "repeats number 7")
	require.NotContains(t, fmt.Sprint(broken.Faults), "other")

	for _, who := range []string{"alice", "vera"} {
		get[wire.Problem](r, 403, who, "POST", "/audit/verify", `{}`)
	}
	for _, bad := range []string{"!", "AAAA", "eJyrrgUAAXUA-Q"} { // no base64, not packed, {}
		require.Equal(t, "next must be that of the last answer.", get[wire.Problem](r, 422, "olga", "POST", "/audit/verify", fmt.Sprintf(`{"next":%q}`, bad)).Detail)
	}
}
