package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

var documents = []string{
	"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md",
	"docs/OPERATIONS.md", "docs/SECURITY.md", "docs/CONFIGURATION.md", "docs/PROTOCOL-ORBIT.md", "docs/PROTOCOL-MYAGENT.md",
	"docs/PROTOCOL-ASP.md", "docs/PROTOCOL-TEAM.md", "docs/GLOSSARY.md",
}

// Commands in the documents use existing flags.
func TestFlagsExist(t *testing.T) {
	parser, err := newParser(streams{})
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, p := range documents {
		text, err := os.ReadFile(filepath.Join("../..", p))
		require.NoError(t, err)
		for _, words := range commands(string(text)) {
			line := strings.Join(words, " ")
			name := words[:1]
			if (name[0] == "sessions" || name[0] == "tasks" || name[0] == "teams") && len(words) > 1 {
				name = words[:2] // their flags are those of what is done with them
			}
			flags := flagsOf(parser.Model.Node, name)
			require.NotEmpty(t, flags, "%s: waggle %s", p, line)
			seen[name[0]] = true
			for _, word := range words[1:] {
				flag, _, _ := strings.Cut(word, "=")
				if strings.HasPrefix(flag, "--") {
					require.Contains(t, flags, flag, "%s: %s", p, line)
				}
			}
		}
	}
	for _, want := range []string{"up", "serve", "chat", "tail", "doctor"} {
		require.Contains(t, seen, want)
	}
}

// flagsOf returns the flags that the help of a command shows, or nothing if such a command does not exist.
func flagsOf(node *kong.Node, name []string) (flags []string) {
	for _, word := range name {
		i := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word && !n.Hidden })
		if i < 0 {
			return nil
		}
		node = node.Children[i]
	}
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			flags = append(flags, "--"+f.Name)
			if f.Tag.Negatable != "" {
				flags = append(flags, "--no-"+f.Name)
			}
		}
	}
	return flags
}

var commandLine = regexp.MustCompile("waggle ((?:up|serve|chat|agents|tasks|teams|sessions|tail|doctor|healthcheck|version)\\b[^`\n|#\"]*)")

// commands returns the words of every waggle command in the text, without "waggle".
func commands(text string) [][]string {
	var out [][]string
	for _, m := range commandLine.FindAllStringSubmatch(text, -1) {
		words := strings.Fields(m[1])
		for i := range words {
			words[i] = strings.TrimRight(words[i], ".,;:)") // the sentence's, not the command's
		}
		out = append(out, words)
	}
	return out
}
