package repocheck

import (
	"go/ast"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	// vague matches subjects and phrases that the glossary's rules for sentences exclude.
	vague = regexp.MustCompile(`(?i)\b(whoever|nobody|somebody|anybody|there (is|are|was|were)|(is|are|was|were) (no|none)|that is (one|none)|at it)\b` +
		`|\b(is|are|was|were) on([.,;:)]|$| (and|or|in)\b)|(^|[.;] )(who|what)\b`)
	// figurative matches words of former names.
	figurative = regexp.MustCompile(`(?i)\b(asides?|desks?|mouths?|manners?|offices?|crowds?|lookouts?|glances?|ears?|errands?|undertakers?|troops?|hearers?|whispers?|head ?starts?)\b`)
	// plain matches sentences that vague would take for excluded ones: comparisons and questions.
	plain = regexp.MustCompile(`(?i)\b(is|are|was|were) no (longer|more|less|later|earlier|older|newer|larger|smaller)\b|(^|[.;] )(who|what)\b[^.;]*\?`)
)

// excluded returns the first phrase of a text that may not come back, or "".
func excluded(text string) string {
	text = plain.ReplaceAllString(text, "")
	if m := vague.FindString(text); m != "" {
		return m
	}
	return figurative.FindString(text)
}

func TestExcludedPhrasesAreFound(t *testing.T) {
	for _, text := range []string{
		"nobody is at it any more", "There is a run", "a text that is no JSON", "the run that is on.", "What waits is bounded.", "the desk's commands",
	} {
		require.NotEmpty(t, excluded(text), text)
	}
	for _, text := range []string{
		"the lease is no longer valid", "the command is on the bus", "Who may import? Any package of services.", "A Store is safe", "one year",
	} {
		require.Empty(t, excluded(text), text)
	}
}

// ruledPages are the pages, beside the decisions, that follow the rules.
var ruledPages = []string{
	"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/OPERATIONS.md", "docs/SECURITY.md", "deploy/helm/waggle/README.md",
	"docs/PROTOCOL-ORBIT.md", "docs/PROTOCOL-ASP.md", "docs/PROTOCOL-MYAGENT.md", "docs/PROTOCOL-TEAM.md", "docs/PROTOCOL-EVENTS.md",
	"docs/CONFIGURATION.md", "docs/generated/asp-messages.md", "docs/generated/errors.md", "docs/generated/events.md",
	"docs/generated/metrics.md", "docs/generated/myagent-events.md", "docs/generated/subjects.md", "docs/generated/team-messages.md",
	"sdk/go/README.md",
}

// changelog follows the rules in its part for the next version.
const (
	changelog  = "CHANGELOG.md"
	unreleased = "## Unreleased"
)

// proseOf returns a page without code, its lines with their numbers kept.
func proseOf(t *testing.T, page string) []string {
	t.Helper()
	return strings.Split(codeSpan.ReplaceAllStringFunc(read(t, page), blank), "\n")
}

func TestPagesFollowTheRulesForSentences(t *testing.T) {
	require.NotEmpty(t, excluded(read(t, glossary)), "it names what it excludes")
	for _, page := range append(decisions(t), append(ruledPages, changelog)...) {
		for n, line := range proseOf(t, page) {
			if page == changelog && strings.HasPrefix(line, "## ") && line != unreleased {
				break // released versions stay as they are
			}
			if m := excluded(line); m != "" {
				t.Errorf("%s:%d: %q in %q", page, n+1, m, line)
			}
		}
	}
}

// blank keeps the line breaks of a text only, so that lines keep their numbers.
func blank(text string) string { return "`" + strings.Repeat("\n", strings.Count(text, "\n")) }

func TestCommentsFollowTheRulesForSentences(t *testing.T) {
	plainNames := map[string]bool{} // names that have passed
	eachGoFile(t, func(name string, f *ast.File, at func(ast.Node) int) {
		for _, c := range f.Comments {
			if m := excluded(strings.Join(strings.Fields(c.Text()), " ")); m != "" {
				t.Errorf("%s:%d: %q", name, at(c), m)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			i, ok := n.(*ast.Ident)
			switch {
			case !ok || plainNames[i.Name]:
			case figurative.MatchString(wordsOf(i.Name)):
				t.Errorf("%s:%d: %s", name, at(i), i.Name)
			default:
				plainNames[i.Name] = true
			}
			return true
		})
	})
}

var hump = regexp.MustCompile(`[A-Z][a-z]`)

// wordsOf splits an identifier into its words.
func wordsOf(name string) string {
	return strings.ReplaceAll(hump.ReplaceAllString(name, " $0"), "_", " ")
}

// firstRuled is the commit after which messages of commits follow the rules.
const firstRuled = "402a496"

func TestCommitsFollowTheRulesForSentences(t *testing.T) {
	log := exec.CommandContext(t.Context(), "git", "log", "--format=%h %B%x00", firstRuled+"..HEAD")
	log.Dir = top(t)
	out, err := log.Output()
	if err != nil {
		t.Logf("not checked: the history does not hold %s (%v)", firstRuled, err)
		return
	}
	for message := range strings.SplitSeq(string(out), "\x00") {
		require.Empty(t, excluded(strings.Join(strings.Fields(message), " ")), message)
	}
}
