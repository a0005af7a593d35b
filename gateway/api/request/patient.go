package request

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// Patient returns the handler with the server's deadline for a request ended once the body is read: the answer may take longer to
// begin.
func Patient(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		if r.Body == nil || r.Body == http.NoBody {
			_ = rc.SetReadDeadline(time.Time{})
		} else {
			r.Body = &body{r.Body, rc}
		}
		h(w, r)
	}
}

// body is that of a request.
type body struct {
	io.ReadCloser
	rc *http.ResponseController
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (n int, err error) {
	if n, err = b.ReadCloser.Read(p); errors.Is(err, io.EOF) {
		_ = b.rc.SetReadDeadline(time.Time{})
	}
	return n, err
}
