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
	for _, p := range append(sitePages(t), documents...) {
		text, err := os.ReadFile(filepath.Join("../..", p))
		require.NoError(t, err)
		for _, words := range commands(string(text)) {
			line := strings.Join(words, " ")
			name := words[:1]
			if len(words) > 1 && flagsOf(root, words[:2]) != nil {
				name = words[:2] // a command of a group, such as "sessions list"
			}
			flags := flagsOf(root, name)
			require.NotEmpty(t, flags, "%s: waggle %s", p, line)
			seen[name[0]] = true
			for _, word := range words[1:] {
				flag, _, _ := strings.Cut(word, "=")
				if strings.HasPrefix(flag, "--") && flag != "-->" { // the end of a comment
					require.Contains(t, flags, flag, "%s: %s", p, line)
				}
			}
		}
	}
	for _, want := range []string{"up", "serve", "chat", "tail", "doctor"} {
		require.Contains(t, seen, want)
	}
}

// sitePages are the pages of docs/site, without the one that has the help of the commands.
func sitePages(t *testing.T) (out []string) {
	t.Helper()
	for _, depth := range []string{"*.md", "*/*.md", "*/*/*.md"} {
		found, err := filepath.Glob("../../docs/site/" + depth)
		require.NoError(t, err)
		for _, p := range found {
			if p != commandsPage && !strings.Contains(p, "node_modules") {
				out = append(out, strings.TrimPrefix(p, "../../"))
			}
		}
	}
	require.NotEmpty(t, out)
	return out
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

var commandLine = regexp.MustCompile("waggle ((?:up|demo|serve|open|docs|chat|agents|tasks|teams|sessions|top|tail|doctor|token|keys|bootstrap|backup|restore|reindex|cells|connections|healthcheck|version)\\b[^`\n|#\"']*)")

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
