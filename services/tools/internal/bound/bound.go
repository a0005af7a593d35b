// Package bound holds the limits of tools' texts and results, and cuts texts to them.
package bound

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

const (
	// MaxTools bounds the tools of one provider; far fewer already confuse models.
	MaxTools = 512
	// Description bounds, in bytes, a tool's description: models read all of it.
	Description = 16 << 10
	// Title bounds, in bytes, the titles of tools and other short texts of a provider.
	Title = 200
	// Message bounds, in bytes, a provider's error message on its way to callers.
	Message = 4 << 10

	// Timeout is the default limit of one call, a common one of MCP clients.
	Timeout = 60 * time.Second
	// Output is the default limit of a result in bytes: more than a model can use, and eight times as much fits into a
	// message of the bus.
	Output = 128 << 10
	// MaxOutput keeps, in bytes, a result within a bus message of 1 MiB.
	MaxOutput = 512 << 10
)

// Shorten cuts s to at most limit bytes, valid UTF-8, with "..." at the cut.
func Shorten(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}

// Cut returns the longest prefix of s of at most limit bytes that ends with a whole character. limit must be below len(s).
// The prefix is a copy, so that the collector can free s.
func Cut(s string, limit int) string {
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return strings.Clone(s[:limit])
}

// TooLong returns INVALID_OUTPUT for an answer of size bytes that may not be cut to limit.
func TooLong(size, limit int) *fault.Fault {
	return fault.Newf(fault.BadOutput, "The tool's result has %d bytes; the limit is %d. Ask for less at a time.", size, limit)
}
