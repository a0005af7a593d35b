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
// of another. Names of servers have no underscore, so two servers cannot collide.
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

// serverOf returns the server's part of an offered name.
func serverOf(offered string) string {
	server, _, _ := strings.Cut(offered, "_")
	return server
}

func checkServerName(name string) error {
	if name == "" || len(name) > maxServerName {
		return fmt.Errorf("must have 1 to %d characters", maxServerName)
	}
	for _, r := range name {
		if !isNameByte(r) || r == '_' {
			return fmt.Errorf("%q may have letters, digits and '-' only", name)
		}
	}
	return nil
}

func isNameByte(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}
