package subject

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Names of the object store of payloads: data that does not fit into an event. Its stream and the subjects of its
// parts are those of every object store of NATS.
const (
	BucketPayloads = "payloads"
	StreamPayloads = "OBJ_" + BucketPayloads

	// PayloadChunks and PayloadMetas are the filters of the parts of all payloads, and of their descriptions.
	PayloadChunks = "$O." + BucketPayloads + ".C.>"
	PayloadMetas  = "$O." + BucketPayloads + ".M.>"
)

// DigestHex is the length of the digest in the name of a payload: SHA-256 in hex.
const DigestHex = 64

// PayloadName returns the name of the object that holds a payload of a log: <tenant>.<kind>.<id>.<digest>. Payloads
// of other logs have other names, even for the same data.
func PayloadName(l Log, digest string) (string, error) {
	if !isDigest(digest) {
		return "", invalid("digest", digest)
	}
	return l.Name() + "." + digest, nil
}

// ParsePayloadName parses the form that PayloadName returns.
func ParsePayloadName(s string) (Log, string, error) {
	cut := strings.LastIndexByte(s, '.')
	if cut < 0 || !isDigest(s[cut+1:]) {
		return Log{}, "", invalid("payload", s)
	}
	l, err := ParseName(s[:cut])
	return l, s[cut+1:], err
}

// LogOf returns the log of a tenant with the name <kind>.<id>.
func LogOf(t id.Tenant, name string) (Log, error) {
	if t.IsZero() {
		return Log{}, fmt.Errorf("%w: a log without a tenant: %q", ErrInvalid, clip(name))
	}
	return ParseName(t.String() + "." + name)
}

// Local returns <kind>.<id>, the log's name within its tenant.
func (l Log) Local() string { return string(l.Kind) + "." + l.Entity.String() }

// PayloadParts returns the subject of the parts of an object, by its NATS id.
func PayloadParts(object string) string { return strings.TrimSuffix(PayloadChunks, ">") + object }

// PayloadMeta returns the subject of the description of the named object.
func PayloadMeta(name string) string {
	return strings.TrimSuffix(PayloadMetas, ">") + base64.URLEncoding.EncodeToString([]byte(name))
}

func isDigest(s string) bool {
	return len(s) == DigestHex && strings.Trim(s, "0123456789abcdef") == ""
}
