package command_test

import (
	"maps"
	"testing"

	"github.com/waggle-dev/waggle/proto-schemas/command"
)

var statuses = []string{
	command.StatusActive, command.StatusBusy, command.StatusInitializing, command.StatusError, command.StatusInactive, command.StatusMaintenance,
}

// Every status has a word in both vocabularies, and each word is read as a status with this word.
func TestWordsOfStatuses(t *testing.T) {
	words := map[command.Vocabulary]map[string]bool{command.VocabularySDK: {}, command.VocabularyDocument: {}}
	for _, s := range statuses {
		for v, all := range words {
			word := v.Word(s)
			all[word] = true
			got, ok := command.ParseStatus(word)
			if !ok || v.Word(got) != word || !command.StatusFits(s, word) || v.Other().Other() != v {
				t.Errorf("%s: %q is read as %q, %v", s, word, got, ok)
			}
		}
		if got, ok := command.ParseStatus(s); !ok || got != s {
			t.Errorf("%s is read as %q, %v", s, got, ok)
		}
	}
	for v, want := range map[command.Vocabulary]map[string]bool{
		command.VocabularySDK:      {"online": true, "offline": true, "busy": true, "error": true, "initializing": true},
		command.VocabularyDocument: {"active": true, "inactive": true, "busy": true, "error": true, "maintenance": true},
	} {
		if !maps.Equal(words[v], want) {
			t.Errorf("words of %s: %v, want %v", v, words[v], want)
		}
	}
}

// A word that only one vocabulary has identifies it.
func TestVocabulariesOfWords(t *testing.T) {
	for word, want := range map[string]command.Vocabulary{
		"online": command.VocabularySDK, "Offline": command.VocabularySDK, "initializing": command.VocabularySDK, "active": command.VocabularyDocument,
		"inactive": command.VocabularyDocument, "MAINTENANCE": command.VocabularyDocument, "busy": "", "error": "", "": "", "asleep": "",
	} {
		if got := command.VocabularyOf(word); got != want {
			t.Errorf("%q is of the vocabulary %q, want %q", word, got, want)
		}
	}
	if _, ok := command.ParseStatus("asleep"); ok || command.VocabularySDK.Word("asleep") != "asleep" {
		t.Error("a word of neither vocabulary is a status, or does not stay as it is")
	}
	if command.StatusFits(command.StatusBusy, "online") || !command.StatusFits(command.StatusMaintenance, "Offline") {
		t.Error("busy fits online, or maintenance does not fit offline")
	}
}
