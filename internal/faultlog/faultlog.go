// Package faultlog splits an error into the part that a caller may see and the details for operators: the first becomes a fault, the second goes
// to the log.
package faultlog

import (
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// away bounds the lines about a bus that cannot be reached: a loss refuses everything at once.
var away = &zerolog.BurstSampler{Burst: 10, Period: time.Second}

// Public returns the fault of an error, nil for nil. It logs other errors than faults with this message, under the reference that callers
// get, and why the bus could not be reached, at most ten times a second.
func Public(log *zerolog.Logger, err error, message string) *fault.Fault {
	ref := uuid.NewString()
	f := fault.From(err, ref)
	switch {
	case f == nil:
	case f.Code == fault.Internal && (f.Ref == ref || f.Ref == ""):
		log.Error().Err(err).Str("reference", f.Ref).Msg(message)
	case f.Code == fault.BusUnavailable && f.Unwrap() != nil:
		sampled := log.Sample(away)
		sampled.Warn().Err(err).Msg("request rejected: NATS unavailable")
	}
	return f
}
