package main

import (
	"fmt"
	"io"
	"time"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/internal/audit"
)

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
	ctx, stop := endable()
	defer stop()
	conn, err := connect(ctx, l.Config)
	if err != nil {
		return err
	}
	defer conn.Close()
	r, err := audit.Verify(ctx, conn)
	if err != nil {
		return err
	}
	return printReport(std.out, r)
}

// printReport prints what a check has found. It returns an error if a record is missing, changed or moved.
func printReport(w io.Writer, r audit.Report) error {
	for _, f := range r.Faults {
		if _, err := fmt.Fprintln(w, "FAULT ", terminal.Strip(f)); err != nil {
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
		err = fmt.Errorf("the audit log is not whole: %d faults", len(r.Faults))
	}
	return err
}
