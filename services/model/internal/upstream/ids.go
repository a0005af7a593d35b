package upstream

import (
	"crypto/sha256"
	"math/big"
	"regexp"
)

var (
	longID  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)
	shortID = regexp.MustCompile(`^[A-Za-z0-9]{9}$`)
)

// LongID returns the id of a call in a form that nearly all servers take: at most 40 letters, digits, hyphens and
// underscores. An id that has the form stays.
func LongID(id string) string {
	if longID.MatchString(id) {
		return id
	}
	return "call_" + digits(id, 24)
}

// ShortID returns the id of a call as nine letters and digits, which Mistral wants. An id that has the form stays.
func ShortID(id string) string {
	if shortID.MatchString(id) {
		return id
	}
	return digits(id, 9)
}

// digits returns a digest of an id as n letters and digits.
func digits(id string, n int) string {
	sum := sha256.Sum256([]byte(id))
	text := new(big.Int).SetBytes(sum[:]).Text(62)
	for len(text) < n {
		text = "0" + text
	}
	return text[:n]
}
