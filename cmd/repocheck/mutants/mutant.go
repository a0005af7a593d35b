package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/token"
	"slices"
	"strings"
)

// mutant is one small fault in the product code. Its identity has no line number, so that it stays the same while other
// functions change.
type mutant struct {
	ID       string `json:"id"`
	File     string `json:"file"`
	Func     string `json:"function"`
	Operator string `json:"operator"`
	Original string `json:"original"`
	With     string `json:"with,omitempty"`
	Ordinal  int    `json:"ordinal,omitempty"` // among those of the function that equal it otherwise
	Line     int    `json:"line"`              // where it was last, for readers only

	start, end int            // the bytes that with replaces
	text       string         // their replacement
	at         token.Position // the code that has to run for the fault to matter
}

// longest is the length up to which records and reports show the code of a mutant.
const longest = 100

// identify sets the identity of a mutant and shortens what readers see of it.
func (m *mutant) identify(dir, original string) {
	sum := sha256.Sum256([]byte(strings.Join([]string{dir, m.File, m.Func, m.Operator, original, fmt.Sprint(m.Ordinal)}, "\x00")))
	m.ID = hex.EncodeToString(sum[:8])
	m.Original, m.With = shorten(original), shorten(m.With)
}

func shorten(s string) string {
	if r := []rune(s); len(r) > longest {
		return string(r[:longest]) + "..."
	}
	return s
}

// apply returns the source text with the fault in it.
func (m *mutant) apply(src []byte) []byte {
	return slices.Concat(src[:m.start], []byte(m.text), src[m.end:])
}

func (m *mutant) String() string {
	s := fmt.Sprintf("%s:%d %s: %s `%s`", m.File, m.Line, m.Func, m.Operator, m.Original)
	if m.With != "" {
		s += " -> `" + m.With + "`"
	}
	return s
}

// order sorts mutants by the hash of seed and identity: the start of the list is the sample. The mutants of first come before
// all others.
func order(all []*mutant, seed int64, first map[string]bool) []*mutant {
	rank := make(map[*mutant]string, len(all))
	for _, m := range all {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", seed, m.ID))
		rank[m] = "1" + string(sum[:])
		if first[m.ID] {
			rank[m] = "0" + string(sum[:])
		}
	}
	out := slices.Clone(all)
	slices.SortFunc(out, func(a, b *mutant) int { return strings.Compare(rank[a], rank[b]) })
	return out
}
