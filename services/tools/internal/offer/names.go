package offer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

const (
	// MaxName is the longest tool name that every model provider accepts.
	MaxName = 64
	// MaxProvider leaves at least half of a tool's name to the tool.
	MaxProvider = 30
	// HashChars of a SHA-256 distinguish changed names.
	HashChars = 8
)

// Name returns the name under which models see a tool: <server>_<tool>. If the tool's own name has other characters than
// [A-Za-z0-9_-] or is too long, Name changes it and appends a hash of the original. The result depends only on the two
// names: a later tool cannot get the name of another. Two servers cannot collide because CheckProviders keeps one's name
// from being the beginning of the other's.
func Name(server, tool string) string {
	clean := strings.Map(func(r rune) rune {
		if IsNameByte(r) {
			return r
		}
		return '_'
	}, tool)
	name := server + "_" + clean
	if clean == tool && tool != "" && len(name) <= MaxName {
		return name
	}
	sum := sha256.Sum256([]byte(tool))
	tail := "_" + hex.EncodeToString(sum[:])[:HashChars]
	return name[:min(len(name), MaxName-len(tail))] + tail
}

// BelongsTo reports whether the offered name can belong to the server.
func BelongsTo(offered, server string) bool { return strings.HasPrefix(offered, server+"_") }

// CheckProviders makes sure that an offered name leads to one server.
func CheckProviders(names []string) error {
	for i, n := range names {
		if n == "" || len(n) > MaxProvider || strings.ContainsFunc(n, func(r rune) bool { return !IsNameByte(r) }) {
			return fmt.Errorf("tools.servers: name %q: use 1 to %d of A-Z a-z 0-9 _ -", n, MaxProvider)
		}
		for j, other := range names {
			if i != j && (n == other || BelongsTo(n, other)) {
				return fmt.Errorf("tools.servers: names %q and %q: tools named %s_... would belong to both", n, other, n)
			}
		}
	}
	return nil
}

// IsNameByte reports whether names of tools and providers may contain r.
func IsNameByte(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}
