package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

var documents = []string{
	"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md",
	"docs/TOUR.md", "docs/OPERATIONS.md", "docs/SECURITY.md", "docs/CONFIGURATION.md", "docs/PROTOCOL-ORBIT.md", "docs/PROTOCOL-MYAGENT.md",
	"docs/PROTOCOL-ASP.md", "docs/PROTOCOL-TEAM.md", "docs/GLOSSARY.md",
}

// Commands in the documents use existing flags.
func TestFlagsExist(t *testing.T) {
	root := newProgram(streams{}).Root
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
			flags := flagsOf(root, name)
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
func flagsOf(root *cobra.Command, name []string) (flags []string) {
	c, rest, err := root.Find(name)
	if err != nil || len(rest) > 0 {
		return nil
	}
	c.InitDefaultHelpFlag()
	c.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, "--"+f.Name) })
	return flags
}

var commandLine = regexp.MustCompile("waggle ((?:up|serve|open|chat|agents|tasks|teams|sessions|tail|doctor|healthcheck|version)\\b[^`\n|#\"']*)")

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
