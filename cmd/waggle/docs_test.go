package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var documents = []string{
	"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md",
	"docs/OPERATIONS.md", "docs/SECURITY.md", "docs/CONFIGURATION.md", "docs/PROTOCOL-ORBIT.md", "docs/PROTOCOL-MYAGENT.md",
	"docs/PROTOCOL-ASP.md", "docs/PROTOCOL-TEAM.md", "docs/GLOSSARY.md",
}

// Commands in the documents use existing flags.
func TestFlagsExist(t *testing.T) {
	help := map[string]string{}
	for _, p := range documents {
		text, err := os.ReadFile(filepath.Join("../..", p))
		require.NoError(t, err)
		for _, c := range commands(string(text)) {
			name := c[0]
			if (name == "sessions" || name == "tasks" || name == "teams") && len(c) > 1 {
				name += " " + c[1] // their flags are those of what is done with them
			}
			if _, ok := help[name]; !ok {
				out, err := exec.CommandContext(t.Context(), "waggle", append(strings.Fields(name), "--help")...).CombinedOutput()
				require.NoError(t, err, "%s: waggle %s\n%s", p, name, out)
				help[name] = string(out)
			}
			for _, word := range c[1:] {
				flag, _, _ := strings.Cut(word, "=")
				if strings.HasPrefix(flag, "--") {
					require.Contains(t, help[name], flag, "%s: %s", p, strings.Join(c, " "))
				}
			}
		}
	}
	for _, want := range []string{"up", "serve", "chat", "tail", "doctor"} {
		require.Contains(t, help, want)
	}
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
