package command

import "strings"

// Vocabulary is a set of words for the statuses of participants. The Agent Swarm Protocol has two: the words of its SDKs and
// the words of its description.
type Vocabulary string

// The vocabularies.
const (
	VocabularySDK      Vocabulary = "sdk"
	VocabularyDocument Vocabulary = "document"
)

// statusWords are the words for each status. A word with several statuses means the first of them.
var statusWords = []struct{ status, sdk, document string }{
	{StatusActive, "online", "active"},
	{StatusBusy, "busy", "busy"},
	{StatusInitializing, "initializing", "busy"},
	{StatusError, "error", "error"},
	{StatusInactive, "offline", "inactive"},
	{StatusMaintenance, "offline", "maintenance"},
}

// Word returns the word for a status, or an unknown status unchanged.
func (v Vocabulary) Word(status string) string {
	for _, w := range statusWords {
		switch {
		case w.status != status:
		case v == VocabularyDocument:
			return w.document
		default:
			return w.sdk
		}
	}
	return status
}

// Other returns the other vocabulary.
func (v Vocabulary) Other() Vocabulary {
	if v == VocabularyDocument {
		return VocabularySDK
	}
	return VocabularyDocument
}

// VocabularyOf returns the vocabulary of a word; empty if it belongs to both or to neither.
func VocabularyOf(word string) Vocabulary {
	inSDK, inDocument := false, false
	for _, w := range statusWords {
		inSDK = inSDK || strings.EqualFold(w.sdk, word)
		inDocument = inDocument || strings.EqualFold(w.document, word)
	}
	switch {
	case inSDK && !inDocument:
		return VocabularySDK
	case inDocument && !inSDK:
		return VocabularyDocument
	}
	return ""
}

// ParseStatus returns the status that a word of either vocabulary stands for.
func ParseStatus(word string) (status string, ok bool) {
	for _, w := range statusWords {
		if w.status == word || w.sdk == word {
			return w.status, true
		}
	}
	return "", false
}

// StatusFits reports whether a word of either vocabulary, in any case, means the status.
func StatusFits(status, word string) bool {
	for _, v := range []Vocabulary{VocabularySDK, VocabularyDocument} {
		if strings.EqualFold(v.Word(status), word) {
			return true
		}
	}
	return false
}
