package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/internal/bus"
	record "github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

type auditCmds struct {
	Show   auditCmd       `cmd:"" default:"withargs" help:"Show records, oldest first (the default)."`
	Verify auditVerifyCmd `cmd:"" help:"Verify that no record is missing, changed or reordered."`
}

type auditCmd struct {
	fileFlag
	natsFlags
	Tenant    string `help:"Only records of this tenant." placeholder:"TENANT"`
	Principal string `help:"Only records of this principal." placeholder:"SUBJECT"`
	Entity    string `help:"Only records about this session, task, team or agent." placeholder:"ID"`
	Action    string `help:"Only records of this action: connection-accepted, connection-refused, connection-closed, authentication-failed, command, decision, tool-call, export, import, quota-refused, deletion, api-call, records-lost." placeholder:"ACTION"`
	Since     string `help:"Only records since this time (RFC 3339) or this long ago (24h)." placeholder:"TIME"`
	Until     string `help:"Only records until this time (RFC 3339) or this long ago." placeholder:"TIME"`
	Follow    bool   `short:"f" help:"Follow new records."`
	JSON      bool   `name:"json" help:"Print records as JSON, one per line."`
}

// Run implements the command.
func (c *auditCmd) Run(std streams) error {
	q, err := c.query(time.Now())
	if err != nil {
		return usageError{err}
	}
	l, err := load(c.Config, *c)
	if err != nil {
		return err
	}
	return connected(l.Config, func(ctx context.Context, conn *bus.Conn) error {
		return audit.Read(ctx, conn, q, func(r record.Record) error { return c.print(std.out, r) })
	})
}

func (c *auditCmd) query(now time.Time) (q audit.Query, err error) {
	q = audit.Query{Principal: c.Principal, Entity: c.Entity, Action: c.Action, Follow: c.Follow}
	if c.Tenant != "" {
		if q.Tenant, err = id.ParseTenant(c.Tenant); err != nil {
			return q, fmt.Errorf("--tenant: %w", err)
		}
	}
	if q.Since, err = moment(c.Since, now); err != nil {
		return q, fmt.Errorf("--since: %w", err)
	}
	if q.Until, err = moment(c.Until, now); err != nil {
		return q, fmt.Errorf("--until: %w", err)
	}
	return q, nil
}

// moment reads a time, or how long before now it is.
func moment(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		return now.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, fmt.Errorf("%q is not a time such as 2026-03-01T12:00:00Z or a duration such as 24h", s)
	}
	return t, nil
}

// print writes a record as a line for people, or as the stored JSON.
func (c *auditCmd) print(w io.Writer, r record.Record) error {
	if c.JSON {
		return json.NewEncoder(w).Encode(r)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %-22s %-7s %s/%s", r.Time.UTC().Format(time.RFC3339), r.Action, r.Outcome, dash(r.Tenant), dash(r.Principal))
	for _, v := range []struct{ name, value string }{
		{"code", r.Code},
		{"service", r.Service},
		{"verb", r.Verb},
		{"kind", r.Kind},
		{"entity", r.Entity},
		{"command", r.Command},
		{"input", r.Input},
		{"server", r.Server},
		{"tool", r.Tool},
		{"resource", r.Resource},
		{"scope", r.Scope},
		{"remote", r.Remote},
		{"dialect", r.Dialect},
	} {
		if v.value != "" {
			fmt.Fprintf(&b, "  %s=%s", v.name, v.value)
		}
	}
	for _, v := range []struct {
		name  string
		value float64
	}{{"limit", r.Limit}, {"used", r.Used}, {"close", float64(r.CloseCode)}, {"ms", float64(r.DurationMS)}, {"count", float64(r.Count)}} {
		if v.value != 0 {
			fmt.Fprintf(&b, "  %s=%s", v.name, strconv.FormatFloat(v.value, 'f', -1, 64))
		}
	}
	_, err := fmt.Fprintln(w, terminal.Strip(b.String()))
	return err
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

type auditVerifyCmd struct {
	fileFlag
	natsFlags
}

// Run implements the command.
func (c *auditVerifyCmd) Run(std streams) error {
	l, err := load(c.Config, *c)
	if err != nil {
		return err
	}
	return connected(l.Config, func(ctx context.Context, conn *bus.Conn) error {
		r, err := audit.Verify(ctx, conn)
		if err != nil {
			return err
		}
		return printReport(std.out, r)
	})
}

// printReport prints what a check has found. It returns an error if a record is missing, changed or moved.
func printReport(w io.Writer, r audit.Report) error {
	for _, f := range r.Faults {
		if _, err := fmt.Fprintln(w, "FAULT ", terminal.Strip(f.String())); err != nil {
			return err
		}
	}
	for _, b := range r.Begun {
		if _, err := fmt.Fprintln(w, "expired ", terminal.Strip(b)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%d records, %d to %d, in %d chains; %d of earlier versions without a chain; %d lost, as their writers report\n",
		r.Records, r.First, r.Last, r.Chains, r.Unlinked, r.Lost)
	if err == nil && r.First > 1 && r.Records > 0 {
		_, err = fmt.Fprintf(w, "the records before %s have expired\n", r.Oldest.UTC().Format(time.RFC3339))
	}
	if err == nil && len(r.Faults) > 0 {
		err = fmt.Errorf("the audit log is damaged: %d faults", len(r.Faults))
	}
	return err
}
