// Package respond answers authenticated HTTP requests with JSON, and failed ones with problem documents (RFC 9457).
package respond

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/faultlog"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Handler returns the answer to a request, for encoding as JSON, or a fault. It is called only for requests of a
// known principal, and on many goroutines at once.
type Handler func(r *http.Request, c *edge.Client) (any, error)

// Created is a Handler's answer after it created a resource: status 201 with the address of the resource, and Answer
// as the JSON.
type Created struct {
	Location string
	Answer   any
}

// Accepted is a Handler's answer for accepted but unfinished work: status 202, and Answer as the JSON.
type Accepted struct{ Answer any }

// Media types of events.
const (
	MediaEvents = "text/event-stream"
	MediaLines  = "application/jsonl" // of a page
)

// MediaBytes is the media type of a file of any kind.
const MediaBytes = "application/octet-stream"

// Bytes is a Handler's answer in another form than JSON. Browsers show images only, and save anything else.
type Bytes struct {
	Media string // of an image; empty = any file
	Name  string // of a file that is saved; empty = the client's choice
	Body  []byte
	Newer bool // the address may have other contents later; else it names these
}

// Text is a Handler's answer that is JSON already.
type Text []byte

// Tagged is a Handler's answer that stays the same as long as its ETag does. Make is not called for a client that has it.
type Tagged struct {
	Tag  string
	Make func() (any, error)
}

// Export is a Handler's answer that is written while it is made: a file. An error cuts the connection, so that no client takes a
// part for the whole.
type Export struct {
	Media, Name string // of the file
	Write       func(context.Context, io.Writer) error
}

// begin tells the client that a file follows.
func (e Export) begin(h http.Header) {
	h.Set("Content-Type", e.Media)
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": e.Name}))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}

// Detailed is a fault whose problem document has more members.
type Detailed struct {
	*fault.Fault
	Members map[string]any
}

// Unwrap returns the fault.
func (d Detailed) Unwrap() error { return d.Fault }

// NoContent is a Handler's answer for finished work without a result: status 204.
type NoContent struct{}

// Authenticator returns the principal of a token that comes from an address.
type Authenticator interface {
	Authenticate(ctx context.Context, remote, token string) (auth.Principal, error)
}

// Server wraps handlers. Auth and Edge are required.
type Server struct {
	Auth     Authenticator
	Edge     *edge.Edge
	Protocol string                                                        // of the clients
	Admit    func(*http.Request, auth.Principal) (leave func(), err error) // bounds the requests of a principal; may be nil
	Refuse   func(http.ResponseWriter, error, *fault.Fault) error          // writes the answer to a request that has failed; nil = answer.Fault
}

// headerTrace is the header with the trace that a request belongs to (W3C trace context).
const headerTrace = "traceparent"

// Traced returns the request with the trace that it belongs to in its context.
func Traced(r *http.Request) *http.Request {
	return r.WithContext(telemetry.Extract(r.Context(), r.Header.Get(headerTrace)))
}

// client returns the client of a request.
func (s Server) client(r *http.Request, p auth.Principal) *edge.Client {
	return s.Edge.Client(p, edge.Origin{Protocol: s.Protocol, Remote: s.Edge.Audit.Remote(r.RemoteAddr)})
}

// Serve returns the handler for a mux. Methods other than GET and HEAD change state: they require a principal that
// may act. GET and HEAD require one that may watch.
func (s Server) Serve(h Handler) http.HandlerFunc { return s.serve(h, 0) }

// ServePage is Serve for a handler whose answer may be as large as a page: it takes room before the page is read.
func (s Server) ServePage(h Handler) http.HandlerFunc { return s.serve(h, pageRoom) }

// ServeExport is Serve for a handler whose answer is an Export.
func (s Server) ServeExport(h Handler) http.HandlerFunc { return s.serve(h, exportRoom) }

const (
	// pageRoom is what a page takes while it is made: the events, and those that are read ahead.
	pageRoom = 2 * answer.MaxPage
	// exportRoom is what an Export takes: the events that were read ahead, in each form.
	exportRoom = 2 << 20
)

func (s Server) serve(h Handler, room int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, _, _ := auth.TokenFromRequest(r)
		p, err := s.Auth.Authenticate(r.Context(), r.RemoteAddr, token)
		if err == nil && !allowed(r, p) {
			err = fault.New(fault.Forbidden)
		}
		if err == nil && s.Admit != nil {
			var leave func()
			if leave, err = s.Admit(r, p); err == nil {
				defer leave()
			}
		}
		var b ready
		if err == nil {
			r = Traced(r)
			b, err = s.made(h, r, s.client(r, p), room)
		}
		if err != nil {
			s.Problem(w, err)
			return
		}
		defer b.part.Leave()
		b.write(w, s.Edge.Logger)
	}
}

// ready is an answer that only has to be written.
type ready struct {
	status   int
	location string
	media    string // empty = JSON
	file     Bytes  // if it is not JSON
	tag      string // empty = none
	body     net.Buffers
	part     *answer.Part
	export   *Export         // in place of a body
	ctx      context.Context //nolint:containedctx // of the request, which the export lasts as long as
}

// made makes the answer, encoded: what it was made of is free while the client reads.
func (s Server) made(h Handler, r *http.Request, c *edge.Client, room int) (b ready, err error) {
	p := c.Principal()
	who := p.Tenant.String() + "/" + p.Subject
	if room > 0 {
		if b.part, err = s.Edge.Room.Enter(r.Context(), who, room); err != nil {
			return b, err
		}
	}
	defer func() {
		if err != nil {
			b.part.Leave()
		}
	}()
	given, tag, err := s.given(h, r, c, room == pageRoom)
	if err != nil {
		return b, err
	}
	b.status, b.tag = http.StatusOK, tag
	switch g := given.(type) {
	case NoContent:
		b.status = http.StatusNoContent
		return b, nil
	case unchanged:
		b.status = http.StatusNotModified
		b.part.Shrink(0)
		return b, nil
	case Created:
		b.status, b.location, given = http.StatusCreated, g.Location, g.Answer
	case Accepted:
		b.status, given = http.StatusAccepted, g.Answer
	}
	switch g := given.(type) {
	case Bytes:
		b.media, b.file, b.body = cmp.Or(g.Media, MediaBytes), g, net.Buffers{g.Body}
	case Export:
		b.export, b.ctx = &g, r.Context()
		return b, nil
	case Text:
		b.body = net.Buffers{g}
	default:
		if b.body, err = encoded(given); err != nil {
			return b, err
		}
	}
	size := sizeOf(b.body)
	if b.part == nil && size > answer.Small {
		b.part, err = s.Edge.Room.Enter(r.Context(), who, size)
	}
	b.part.Shrink(size)
	return b, err
}

// unchanged is the answer to a client that has what it asks for: status 304.
type unchanged struct{}

// given returns the answer of the handler, in its turn if it is a page, and its ETag if it has one.
func (s Server) given(h Handler, r *http.Request, c *edge.Client, page bool) (answer any, tag string, err error) {
	if page {
		made, err := s.Edge.Room.Make(r.Context())
		if err != nil {
			return nil, "", err
		}
		defer made()
	}
	answer, err = h(r, c)
	tagged, is := answer.(Tagged)
	if err != nil || !is {
		return answer, "", err
	}
	if holds(r, tagged.Tag) {
		return unchanged{}, tagged.Tag, nil
	}
	answer, err = tagged.Make()
	return answer, tagged.Tag, err
}

// holds reports whether the client says that it has what the ETag stands for.
func holds(r *http.Request, tag string) bool {
	for one := range strings.SplitSeq(strings.Join(r.Header.Values("If-None-Match"), ","), ",") {
		if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == tag {
			return true
		}
	}
	return false
}

func (b ready) write(w http.ResponseWriter, l zerolog.Logger) {
	if b.export != nil {
		b.stream(w, l)
		return
	}
	if b.location != "" {
		w.Header().Set("Location", b.location)
	}
	if b.media != "" {
		b.guarded(w.Header())
	}
	if b.tag != "" {
		w.Header().Set("ETag", b.tag)
		w.Header().Set("Cache-Control", "private, no-cache") // the client asks each time if it still may see it
	}
	if b.status != http.StatusNoContent && b.status != http.StatusNotModified {
		w.Header().Set("Content-Type", cmp.Or(b.media, "application/json"))
		w.Header().Set("Content-Length", strconv.Itoa(sizeOf(b.body)))
	}
	w.WriteHeader(b.status)
	if _, err := b.body.WriteTo(w); err != nil && b.status != http.StatusNoContent {
		l.Debug().Err(err).Msg("failed to write API response")
	}
}

// stream writes an export, or cuts the connection.
func (b ready) stream(w http.ResponseWriter, l zerolog.Logger) {
	b.export.begin(w.Header())
	w.WriteHeader(b.status)
	if err := b.export.Write(b.ctx, w); err != nil {
		l.Debug().Err(err).Msg("failed to write export")
		panic(http.ErrAbortHandler)
	}
}

// guarded has a browser take a file for nothing but what it is, and lets clients check it.
func (b ready) guarded(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cache-Control", "private, max-age=86400, immutable")
	if b.file.Newer {
		h.Set("Cache-Control", "private, no-cache")
	}
	sum := sha256.Sum256(b.file.Body)
	h.Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":")
	if b.media == MediaBytes {
		h.Set("Content-Disposition", disposed(b.file.Name))
	}
}

// disposed is the form of the Content-Disposition of a file to save.
func disposed(name string) string {
	if name == "" {
		return "attachment"
	}
	return mime.FormatMediaType("attachment", map[string]string{"filename": name})
}

// allowed reports whether the role of the principal covers the request.
func allowed(r *http.Request, p auth.Principal) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return p.MayWatch()
	}
	return p.MayAct()
}

// Problem writes the problem document of a fault. The log has what it does not say.
func (s Server) Problem(w http.ResponseWriter, err error) {
	f := faultlog.Public(&s.Edge.Logger, err, "API request failed: internal error")
	refuse := s.Refuse
	if refuse == nil {
		refuse = func(w http.ResponseWriter, _ error, f *fault.Fault) error { return answer.Fault(w, f) }
	}
	if detailed, ok := errors.AsType[Detailed](err); ok && s.Refuse == nil {
		refuse = func(w http.ResponseWriter, _ error, f *fault.Fault) error {
			return answer.With(w, f, maps.Clone(detailed.Members))
		}
	}
	if err := refuse(w, err, f); err != nil {
		s.Edge.Logger.Debug().Err(err).Msg("failed to write problem document")
	}
}
