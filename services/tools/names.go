package tools

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

const (
	// maxName is the longest tool name that every model provider accepts.
	maxName = 64
	// maxServerName leaves at least half of a tool's name to the tool.
	maxServerName = 30
	// hashChars of a SHA-256 tell apart the names that had to be changed.
	hashChars = 8
)

// offeredName returns the name under which models see a tool: <server>_<tool>.
// If the tool's own name has other characters than [A-Za-z0-9_-] or is too long,
// it is changed and a hash of the original is appended. The result depends on
// nothing but the two names: a tool that appears later cannot take over the name
// of another. Two servers cannot collide because checkServerNames keeps one's name
// from being the beginning of the other's.
func offeredName(server, tool string) string {
	clean := strings.Map(func(r rune) rune {
		if isNameByte(r) {
			return r
		}
		return '_'
	}, tool)
	name := server + "_" + clean
	if clean == tool && tool != "" && len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(tool))
	tail := "_" + hex.EncodeToString(sum[:])[:hashChars]
	return name[:min(len(name), maxName-len(tail))] + tail
}

// belongsTo reports whether the offered name can be one of the server's.
func belongsTo(offered, server string) bool { return strings.HasPrefix(offered, server+"_") }

// checkServerNames makes sure that an offered name leads to one server.
func checkServerNames(names []string) error {
	for i, n := range names {
		if n == "" || len(n) > maxServerName || strings.ContainsFunc(n, func(r rune) bool { return !isNameByte(r) }) {
			return fmt.Errorf("tools.servers: name %q: use 1 to %d of A-Z a-z 0-9 _ -", n, maxServerName)
		}
		for j, other := range names {
			if i != j && (n == other || belongsTo(n, other)) {
				return fmt.Errorf("tools.servers: names %q and %q: tools named %s_... would belong to both", n, other, n)
			}
		}
	}
	return nil
}

func isNameByte(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}
