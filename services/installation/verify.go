package installation

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"

	"github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

const (
	// maxChecked bounds the records that one request checks: some seconds of work.
	maxChecked = 10_000
	// maxFaults bounds the faults of an answer.
	maxFaults = 100
	// maxState bounds the stored form of a check, of which a chain takes some 100 bytes, so that it fits into a message of the bus.
	maxState = 500 << 10
	// maxPlain bounds its form in memory.
	maxPlain = 8 << 20
)

// verify checks the next part of the audit log. The state of the check is in the answer: any replica may continue it.
func (c Config) verify(ctx context.Context, in api.VerifyAudit) (api.AuditCheck, error) {
	var check audit.Check
	if in.Next != "" {
		if err := unpack(in.Next, &check); err != nil {
			return api.AuditCheck{}, fault.Newf(fault.InvalidField, "next must be that of the last answer.").At("next").Wrap(err)
		}
	}
	done, err := check.Continue(ctx, c.Conn, maxChecked)
	if err != nil {
		return api.AuditCheck{}, unavailable(err)
	}
	out := answer(check.Report)
	if !done {
		out.Next, err = pack(check)
	}
	return out, err
}

func answer(r audit.Report) api.AuditCheck {
	out := api.AuditCheck{
		Records: r.Records, Of: max(r.Last+1, r.First) - r.First, First: r.First, Last: r.Last, Oldest: r.Oldest.UTC(), Newest: r.Newest.UTC(),
		Chains: r.Chains, Begun: len(r.Begun), Unlinked: r.Unlinked, Lost: r.Lost, Faults: []api.AuditFault{},
	}
	for _, f := range r.Faults[:min(len(r.Faults), maxFaults)] {
		out.Faults = append(out.Faults, api.AuditFault{Seq: f.Record, Text: f.Text})
	}
	out.More = len(r.Faults) - len(out.Faults)
	return out
}

// pack returns the stored form of a check.
func pack(check audit.Check) (string, error) {
	plain, err := json.Marshal(check)
	if err != nil {
		return "", fmt.Errorf("store the check of the audit log: %w", err)
	}
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	_, _ = w.Write(plain) // a buffer takes all
	_ = w.Close()
	out := base64.RawURLEncoding.EncodeToString(packed.Bytes())
	if len(plain) > maxPlain || len(out) > maxState {
		return "", fault.Newf(fault.MessageTooBig, "The audit log has too many chains or faults for a check in parts. Run: waggle audit verify")
	}
	return out, nil
}

// unpack reads the stored form of a check.
func unpack(text string, check *audit.Check) error {
	packed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return fmt.Errorf("decode the state: %w", err)
	}
	r, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return fmt.Errorf("unpack the state: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxPlain+1))
	if err != nil {
		return fmt.Errorf("unpack the state: %w", err)
	}
	if err := json.Unmarshal(plain, check); err != nil {
		return fmt.Errorf("read the state: %w", err)
	}
	return check.Valid()
}
