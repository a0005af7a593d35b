package repocheck

import (
	"go/ast"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// formerNames are the words of former names, without their plurals.
var formerNames = []string{
	"aside", "desk", "mouth", "manner", "office", "crowd", "lookout", "glance", "ear", "errand", "undertaker", "troop", "hearer", "whisper",
}

var (
	// vague matches subjects and phrases that the glossary's rules for sentences exclude.
	vague = regexp.MustCompile(`(?i)\b(whoever|nobody|somebody|anybody|there (is|are|was|were)|(is|are|was|were) (no|none)|that is (one|none)|at it)\b` +
		`|\b(is|are|was|were) on([.,;:)]|$| (and|or|in)\b)|(^|[.;] )(who|what)\b`)
	// figurative matches words of former names.
	figurative = regexp.MustCompile(`(?i)\b((` + strings.Join(formerNames, "|") + `)s?|head ?starts?)\b`)
	// vagueName matches words that names of functions and variables exclude beside the figurative ones.
	vagueName = regexp.MustCompile(`(?i)\b(whoever|nobody|somebody|anybody)\b`)
	// plain matches sentences that vague would take for excluded ones: comparisons and questions.
	plain = regexp.MustCompile(`(?i)\b(is|are|was|were) no (longer|more|less|later|earlier|older|newer|larger|smaller)\b|(^|[.;] )(who|what)\b[^.;]*\?`)
)

// excluded returns the first phrase of a text that may not come back, or "".
func excluded(text string) string {
	if !mayBeExcluded(text) {
		return ""
	}
	text = plain.ReplaceAllString(text, "")
	if m := vague.FindString(text); m != "" {
		return m
	}
	return figurative.FindString(text)
}

// marks are the words, and the pairs of words, of which every excluded phrase has one.
var marks = func() map[string]bool {
	out := map[string]bool{}
	for _, word := range formerNames {
		out[word], out[word+"s"] = true, true
	}
	for _, phrase := range []string{
		"whoever", "nobody", "somebody", "anybody", "who", "what", "is one", "at it", "headstart", "headstarts", "head start", "head starts",
	} {
		out[phrase] = true
	}
	for _, be := range []string{"is", "are", "was", "were"} {
		for _, phrase := range []string{"there " + be, be + " no", be + " none", be + " on"} {
			out[phrase] = true
		}
	}
	return out
}()

// mayBeExcluded reports whether a text has a mark. Few texts have one, and the expressions take much longer.
func mayBeExcluded(text string) bool {
	last := ""
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), isBetweenWords) {
		if marks[word] || len(last) <= len("there") && marks[last+" "+word] {
			return true
		}
		last = word
	}
	return false
}

// isBetweenWords reports what \b takes for the end of a word.
func isBetweenWords(r rune) bool {
	return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
}

func TestExcludedPhrasesAreFound(t *testing.T) {
	for _, text := range []string{
		"nobody is at it any more", "There is a run", "a text that is no JSON", "the run that is on.", "What waits is bounded.", "the desk's commands",
	} {
		require.NotEmpty(t, excluded(text), text)
	}
	for mark := range marks {
		require.NotEmpty(t, excluded(exampleOf(mark)), mark)
		require.NotEmpty(t, excluded(strings.ToUpper(exampleOf(mark))), mark)
	}
	for _, text := range []string{
		"the lease is no longer valid", "the command is on the bus", "Who may import? Any package of services.", "A Store is safe", "one year",
	} {
		require.Empty(t, excluded(text), text)
	}
}

// exampleOf returns an excluded phrase that has the mark.
func exampleOf(mark string) string {
	if mark == "is one" {
		return "that " + mark
	}
	return mark
}

// ruledPages are the pages, beside the decisions, that follow the rules.
var ruledPages = []string{
	"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/TOUR.md", "docs/UPGRADING.md", "docs/OPERATIONS.md", "docs/SECURITY.md", "deploy/helm/waggle/README.md",
	"docs/PROTOCOL-ORBIT.md", "docs/PROTOCOL-ASP.md", "docs/PROTOCOL-MYAGENT.md", "docs/PROTOCOL-TEAM.md", "docs/PROTOCOL-EVENTS.md", "docs/PROTOCOL-AGUI.md", "docs/PROTOCOL-AISDK.md",
	"docs/CONFIGURATION.md", "docs/SCALE.md", "docs/generated/asp-messages.md", "docs/generated/errors.md", "docs/generated/events.md",
	"docs/generated/metrics.md", "docs/MODULES.md", "docs/generated/myagent-events.md", "docs/generated/subjects.md", "docs/generated/team-messages.md",
	"sdk/go/README.md",
}

// changelog follows the rules in its part for the next version.
const (
	changelog  = "CHANGELOG.md"
	unreleased = "## 0.1.0 - unreleased"
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
			case excludedName(i.Name):
				t.Errorf("%s:%d: %s", name, at(i), i.Name)
			default:
				plainNames[i.Name] = true
			}
			return true
		})
	})
}

var hump = regexp.MustCompile(`[A-Z][a-z]`)

// excludedName reports whether an identifier has a word of a former name.
func excludedName(name string) bool {
	words := strings.ReplaceAll(hump.ReplaceAllString(name, " $0"), "_", " ")
	return mayBeExcluded(words) && (figurative.MatchString(words) || vagueName.MatchString(words))
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
