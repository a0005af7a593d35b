package arrival

import "bytes"

// For a request that it does not understand http.Server writes the answer itself: a status line, these headers, and the status again.
var (
	statusLine = []byte("HTTP/1.1 ")
	ownHeaders = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")
	moreHeader = []byte("\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff")
)

// maxRefusal is more than any of these answers has.
const maxRefusal = 512

// guarded returns such an answer with the headers that every answer has; nil for anything else.
func guarded(p []byte) []byte {
	if len(p) > maxRefusal || !bytes.HasPrefix(p, statusLine) {
		return nil
	}
	at := bytes.Index(p, []byte("\r\n"))
	if at < 0 || !bytes.HasPrefix(p[at:], ownHeaders) {
		return nil
	}
	out := make([]byte, 0, len(p)+len(moreHeader))
	out = append(out, p[:at]...)
	out = append(out, moreHeader...)
	return append(out, p[at:]...)
}
