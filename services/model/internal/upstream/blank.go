package upstream

import "strings"

// Texts that stand for texts without any: several servers refuse those.
const (
	emptyMessage = "(empty message)"
	emptyResult  = "(no output)"
)

// Blank reports whether a text is all white space.
func Blank(text string) bool { return strings.TrimSpace(text) == "" }

// OrEmpty returns the text of a user's message, never a blank one.
func OrEmpty(text string) string { return orElse(text, emptyMessage) }

// OrNothing returns the text of a tool's result, never a blank one.
func OrNothing(text string) string { return orElse(text, emptyResult) }

func orElse(text, otherwise string) string {
	if Blank(text) {
		return otherwise
	}
	return text
}
