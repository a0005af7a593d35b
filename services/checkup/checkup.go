// Package checkup examines a running installation through NATS: each finding states a fact and, for a fault, the remedy.
//
// "waggle doctor" and the console show its findings. The doctor adds those about the machine that it runs on.
package checkup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Level is the severity of a finding.
type Level string

// Levels of findings, from good to bad.
const (
	OK   Level = "OK"
	Warn Level = "WARN"
	Fail Level = "FAIL"
)

// Finding is the result of one check.
type Finding struct {
	Level Level       `json:"level"`
	What  string      `json:"what"`           // the subject of the check
	Is    string      `json:"is"`             // the observed state
	Do    string      `json:"do,omitempty"`   // the remedy; empty if OK
	Uses  []quota.Use `json:"uses,omitempty"` // of quotas: how much of which limit is used
}

// One returns one finding.
func One(level Level, what, is, do string) []Finding {
	return []Finding{{Level: level, What: what, Is: is, Do: do}}
}

// Streams compares the streams with those that the code wants.
func Streams(ctx context.Context, conn *bus.Conn, wanted bus.Topology) []Finding {
	const what = "streams"
	drift, err := bus.Verify(ctx, conn, wanted)
	if err != nil {
		return One(Fail, what, err.Error(), "start a role once: it makes what is missing")
	}
	if len(drift) == 0 {
		return One(OK, what, "as this version needs them", "")
	}
	if !slices.ContainsFunc(drift, func(d bus.Drift) bool { return !d.Audit || d.Field == "stream" }) {
		return One(Warn, what, drift[0].String(), "the audit log keeps its limits until you change them: \"waggle bootstrap --change-audit-retention\" "+
			"with the key of the user retention")
	}
	lines := make([]string, len(drift))
	for i, d := range drift {
		lines[i] = d.String()
	}
	return One(Fail, what, strings.Join(lines, "\n"), "start a role once: it makes what is missing and mends what can be mended; "+
		"if it refuses, the stream has to be copied into a new one")
}

// Clock compares the clock of this machine with that of the NATS server.
func Clock(ctx context.Context, conn *bus.Conn) []Finding {
	before := time.Now()
	s, err := conn.JS().Stream(ctx, subject.Partition(0).EventStream())
	if err != nil {
		return nil // the finding about streams reports it
	}
	after := time.Now()
	half := after.Sub(before) / 2
	return skew(s.CachedInfo().TimeStamp.Sub(before.Add(half)), half)
}

// skew judges the difference between two clocks, measured with the given uncertainty.
func skew(d, uncertainty time.Duration) []Finding {
	const what = "clock"
	is := fmt.Sprintf("%s off the NATS server's (±%s)", d.Abs().Round(time.Millisecond), uncertainty.Round(100*time.Microsecond))
	switch off := d.Abs() - uncertainty; {
	case off > 30*time.Second: // breaks credentials and timers
		return One(Fail, what, is, "synchronise the clocks (NTP)")
	case off > time.Second: // makes times in the log look out of order
		return One(Warn, what, is, "synchronise the clocks (NTP)")
	}
	return One(OK, what, is, "")
}
