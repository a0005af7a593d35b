// Package api answers authenticated HTTP requests with JSON, and failed ones with problem documents (RFC 9457).
package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Handler returns the answer to a request, for encoding as JSON, or a fault. It is called only for requests of a
// known principal, and on many goroutines at once.
type Handler func(r *http.Request, p auth.Principal) (any, error)

// Created is a Handler's answer after it created a resource: status 201 with the address of the resource, and Answer
// as the JSON.
type Created struct {
	Location string
	Answer   any
}

// Accepted is a Handler's answer for accepted but unfinished work: status 202, and Answer as the JSON.
type Accepted struct{ Answer any }

// NoContent is a Handler's answer for finished work without a result: status 204.
type NoContent struct{}

// Authenticator returns the principal of a token that comes from an address.
type Authenticator interface {
	Authenticate(ctx context.Context, remote, token string) (auth.Principal, error)
}

// Server wraps handlers. Auth is required.
type Server struct {
	Auth   Authenticator
	Logger zerolog.Logger
	Admit  func(*http.Request, auth.Principal) (leave func(), err error) // bounds the requests of a principal; may be nil
}

// Serve returns the handler for a mux. Methods other than GET and HEAD change state: they require a principal that
// may act. GET and HEAD require one that may watch.
func (s Server) Serve(h Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, _, _ := auth.TokenFromRequest(r)
		p, err := s.Auth.Authenticate(r.Context(), r.RemoteAddr, token)
		if err == nil && !allowed(r, p) {
			err = fault.New(fault.Forbidden)
		}
		var answer any
		if err == nil && s.Admit != nil {
			var leave func()
			if leave, err = s.Admit(r, p); err == nil {
				defer leave()
			}
		}
		if err == nil {
			answer, err = h(r, p)
		}
		if err != nil {
			s.problem(w, err)
			return
		}
		if _, none := answer.(NoContent); none {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		switch c := answer.(type) {
		case Created:
			w.Header().Set("Location", c.Location)
			w.WriteHeader(http.StatusCreated)
			answer = c.Answer
		case Accepted:
			w.WriteHeader(http.StatusAccepted)
			answer = c.Answer
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			s.Logger.Debug().Err(err).Msg("fail to write API answer")
		}
	}
}

// allowed reports whether the role of the principal covers the request.
func allowed(r *http.Request, p auth.Principal) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return p.MayWatch()
	}
	return p.MayAct()
}

func (s Server) problem(w http.ResponseWriter, err error) {
	f := fault.From(err, uuid.NewString())
	if f.Code == fault.Internal {
		s.Logger.Error().Err(err).Str("reference", f.Ref).Msg("fail API request for internal reason")
	}
	if err := answer.Fault(w, f); err != nil {
		s.Logger.Debug().Err(err).Msg("fail to write problem document")
	}
}
