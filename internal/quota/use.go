package quota

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// readBatch is how many holdings one request reads.
const readBatch = 1000

// Use is how much of a limit a tenant or a principal uses.
type Use struct {
	Tenant    string  `json:"tenant"`
	Principal string  `json:"principal,omitempty"` // as the ledger names it; of children the task; empty: the tenant as a whole
	Resource  string  `json:"resource"`
	Used      float64 `json:"used"`
	Limit     float64 `json:"limit"`
}

// Daily reports whether the limit is for a day.
func (u Use) Daily() bool {
	return slices.ContainsFunc(ofDay, func(r id.Name) bool { return r.String() == u.Resource })
}

// Share returns the used part of the limit.
func (u Use) Share() float64 { return u.Used / u.Limit }

// InUse reads the holdings of limited resources from the bus, without its own ledger, and returns the use of each
// tenant and of each principal that has a limit: of a day only that of now. The most used limits come first. The use of
// connections includes gateways that ended within the last 30 seconds.
func InUse(ctx context.Context, conn *bus.Conn, p Policy, now time.Time) ([]Use, error) {
	var out []Use
	for _, r := range audit.Held {
		if !p.Bounds(r) {
			continue
		}
		all, err := holdings(ctx, conn, r, subject.QuotaKeys(r))
		if err != nil {
			return nil, err
		}
		out = append(out, p.uses(r, all, now)...)
	}
	return mostUsed(out), nil
}

// InUseBy is InUse for one tenant, with the limits of which the tenant or the principal uses nothing. Of its other principals
// it has those that use something, if all are wanted. Limits of tasks are left out.
func InUseBy(ctx context.Context, conn *bus.Conn, p Policy, t id.Tenant, principal string, everyone bool, now time.Time) ([]Use, error) {
	var out []Use
	own := id.EntityFromExternal(principal)
	for _, r := range audit.Held {
		if r == audit.Children || !p.Bounds(r) {
			continue
		}
		all, err := holdings(ctx, conn, r, subject.QuotaKeysOf(t, r))
		if err != nil {
			return nil, err
		}
		sums := sumsOf(r, all, now)
		out = append(out, p.limited(r, owner{tenant: t}, "", sums)...)
		out = append(out, p.limited(r, owner{t, own}, principal, sums)...)
		delete(sums, owner{tenant: t})
		delete(sums, owner{t, own})
		if everyone {
			out = append(out, p.sorted(r, sums)...)
		}
	}
	return mostUsed(out), nil
}

func mostUsed(all []Use) []Use {
	slices.SortStableFunc(all, func(a, b Use) int { return cmp.Compare(b.Share(), a.Share()) })
	return all
}

// uses sums up the holdings of a resource.
func (p Policy) uses(r id.Name, all map[subject.Quota]int64, now time.Time) []Use {
	return p.sorted(r, sumsOf(r, all, now))
}

// sumsOf adds up the holdings of a resource, by tenant and by principal.
func sumsOf(r id.Name, all map[subject.Quota]int64, now time.Time) map[owner]int64 {
	sums := map[owner]int64{}
	for q, n := range all {
		if slices.Contains(ofDay, r) && dayOf(q.Holder) != now.UTC().Format(dayLayout) {
			continue
		}
		sums[owner{tenant: q.Tenant}] += n
		sums[owner{q.Tenant, q.Principal}] += n
	}
	return sums
}

// limited returns the use of an owner whose principal has the name, if it has a limit.
func (p Policy) limited(r id.Name, o owner, name string, sums map[owner]int64) []Use {
	limits := Config{Policy: p}.caps(r, o.tenant, name)
	limit := limits.principal
	if o.principal.IsZero() {
		limit = limits.tenant
	}
	if limit <= 0 {
		return nil
	}
	l, u := Refusal{Resource: r, Limit: limit, Used: sums[o]}.Amounts()
	return []Use{{Tenant: o.tenant.String(), Principal: name, Resource: r.String(), Used: u, Limit: l}}
}

// sorted returns the use of all owners that have a limit.
func (p Policy) sorted(r id.Name, sums map[owner]int64) (out []Use) {
	for o := range sums {
		out = append(out, p.limited(r, o, o.principal.String(), sums)...)
	}
	slices.SortFunc(out, func(a, b Use) int {
		return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Principal, b.Principal))
	})
	return out
}

// holdings reads the keys of a resource, in batches.
func holdings(ctx context.Context, conn *bus.Conn, r id.Name, keys string) (map[subject.Quota]int64, error) {
	out := map[subject.Quota]int64{}
	for next := uint64(1); next > 0; {
		var err error
		if next, err = readHoldings(ctx, conn, r, keys, next, out); err != nil {
			return nil, fmt.Errorf("read the holdings of %s: %w", r, err)
		}
	}
	return out, nil
}

// readHoldings reads one batch from a sequence on and returns the next sequence, 0 at the end.
func readHoldings(ctx context.Context, conn *bus.Conn, r id.Name, keys string, from uint64, into map[subject.Quota]int64) (next uint64, err error) {
	name := subject.QuotaBucket(r)
	prefix := subject.BucketSubject(name, "")
	nc := conn.NATS()
	inbox := nc.NewRespInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return 0, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	ask, err := json.Marshal(map[string]any{"seq": from, "next_by_subj": subject.BucketSubject(name, keys), "batch": readBatch})
	if err != nil {
		return 0, err
	}
	if err := nc.PublishRequest("$JS.API.DIRECT.GET."+subject.BucketStream(name), inbox, ask); err != nil {
		return 0, err
	}
	for last := from; ; {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return 0, err
		}
		switch status := m.Header.Get("Status"); status {
		case "":
			if last, err = hold(m, prefix, into); err != nil {
				return 0, err
			}
		case "204": // the end of the batch
			if m.Header.Get("Nats-Num-Pending") == "0" {
				return 0, nil
			}
			return last + 1, nil
		case "404":
			return 0, nil
		default:
			return 0, fmt.Errorf("the bus answers %s %s", status, m.Header.Get("Description"))
		}
	}
}

// hold adds the holding that a stored message is, unless it marks one that was returned, and returns its sequence.
func hold(m *nats.Msg, prefix string, into map[subject.Quota]int64) (uint64, error) {
	seq, err := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
	if err != nil {
		return 0, err
	}
	q, err := subject.ParseQuotaKey(strings.TrimPrefix(m.Header.Get("Nats-Subject"), prefix))
	if err != nil {
		return seq, nil //nolint:nilerr // of another version
	}
	n, err := strconv.ParseInt(string(m.Data), 10, 64)
	if m.Header.Get("KV-Operation") == "" && err == nil && n > 0 {
		into[q] = n
	}
	return seq, nil
}
