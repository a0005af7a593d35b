package gateway

import (
	"encoding/json"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/internal/faultlog"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// answers writes what the gateway itself says to requests.
type answers struct {
	logger  zerolog.Logger
	refused *prometheus.CounterVec // requests, by the code of their fault
}

func (a *answers) answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	a.logUnsent(json.NewEncoder(w).Encode(v))
}

// problem answers with a fault.
func (a *answers) problem(w http.ResponseWriter, f *fault.Fault) {
	a.logUnsent(answer.Fault(w, f))
}

// logUnsent logs why a client does not have its answer.
func (a *answers) logUnsent(err error) {
	if err != nil {
		a.logger.Debug().Err(err).Msg("failed to write HTTP response")
	}
}

// refuse counts a request that is refused with the fault, and answers it.
func (a *answers) refuse(w http.ResponseWriter, f *fault.Fault) {
	a.refused.WithLabelValues(string(f.Code)).Inc()
	a.problem(w, f)
}

// asFault returns the part of err that a client may see. The log has the rest.
func (a *answers) asFault(err error) *fault.Fault {
	return faultlog.Public(&a.logger, err, "request failed: internal error")
}
