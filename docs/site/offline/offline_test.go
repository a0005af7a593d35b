package offline

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/docs/site"
)

func get(t *testing.T, d *Docs, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	d.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w
}

func opened(t *testing.T) *Docs {
	t.Helper()
	d, err := New("v1")
	require.NoError(t, err)
	return d
}

var (
	references = regexp.MustCompile(`(?:href|src|srcset)="([^"#:]*)(?:#([^"]*))?"`)
	ids        = regexp.MustCompile(` id="([^"]+)"`)
)

// TestLinksLeadSomewhere: every link and picture of every page leads to a page or a file, and its anchor to a heading.
func TestLinksLeadSomewhere(t *testing.T) {
	d := opened(t)
	seen := map[string][]string{} // the ids of a target
	for _, p := range d.pages {
		path := "/" + strings.TrimSuffix(p.Link, "index")
		w := get(t, d, path)
		require.Equal(t, http.StatusOK, w.Code, path)
		for _, m := range references.FindAllStringSubmatch(w.Body.String(), -1) {
			to := resolve(path, m[1])
			if seen[to] == nil {
				target := get(t, d, to)
				require.Equal(t, http.StatusOK, target.Code, "%s links to %s", path, m[1])
				seen[to] = found(target.Body.String())
			}
			if m[2] != "" {
				require.Contains(t, seen[to], m[2], "%s: %s", path, m[0])
			}
		}
	}
}

func resolve(from, link string) string {
	if link == "" {
		return from
	}
	base := httptest.NewRequest(http.MethodGet, from, nil).URL
	to, err := base.Parse(link)
	if err != nil {
		return link
	}
	return to.Path
}

func found(body string) []string {
	out := []string{}
	for _, m := range ids.FindAllStringSubmatch(body, -1) {
		out = append(out, m[1])
	}
	return out
}

// TestEveryPageIsInTheNavigation: no page is lost.
func TestEveryPageIsInTheNavigation(t *testing.T) {
	d := opened(t)
	err := fs.WalkDir(site.Files, ".", func(path string, _ fs.DirEntry, err error) error {
		if link, ok := strings.CutSuffix(path, ".md"); ok && link != "README" {
			require.Contains(t, d.byLink, link)
		}
		return err
	})
	require.NoError(t, err)
}

func TestPagesAsMarkdown(t *testing.T) {
	d := opened(t)
	source, err := site.Files.ReadFile("start/run-it.md")
	require.NoError(t, err)
	w := get(t, d, "/start/run-it.md")
	require.Equal(t, string(source), w.Body.String())
	require.Equal(t, "text/markdown; charset=utf-8", w.Header().Get("Content-Type"))
	require.Contains(t, get(t, d, "/llms.txt").Body.String(), "- [Run it](/start/run-it.md)\n")
}

func TestSearch(t *testing.T) {
	d := opened(t)
	hits := d.Search("pull PLUG")
	require.NotEmpty(t, hits)
	require.Equal(t, "Pull the plug", hits[0].Page)
	require.Empty(t, d.Search("xyzzy"))
	require.Empty(t, d.Search(" "))
	require.NotContains(t, get(t, d, "/search?q=%3Cscript%3E").Body.String(), "<script>")
	require.Equal(t, http.StatusNotFound, get(t, d, "/none").Code)
}

func TestFind(t *testing.T) {
	d := opened(t)
	for words, want := range map[string]string{
		"": "/", "start/run-it": "/start/run-it", "run-it.md": "/start/run-it", "pull the plug": "/start/pull-the-plug", "tool calls": "/search?q=tool+calls",
	} {
		require.Equal(t, want, d.Find(words), words)
	}
}

func TestRender(t *testing.T) {
	body, headings, err := render("# T\n\n<!-- not run: x -->\n::: code-group\n\n```sh [One]\na < b\n```\n\n```sh [Two]\nc\n```\n\n:::\n\n## 1. What & why?\n\n" +
		"::: tip Mind\nSee [x](x.md#y).\n:::\n\n```js [a.js]\n// ::: no\n```\n")
	require.NoError(t, err)
	require.Equal(t, "_1-what-why", headings[1].ID)
	for _, want := range []string{
		`<input type="radio" name="tab-1" id="tab-1-0" checked><label for="tab-1-0">One</label>`, "a &lt; b", `id="tab-1-1">`, `<div class="note tip">`,
		`<a href="x#y">x</a>`, `<p class="file">a.js</p>`, "// ::: no",
	} {
		require.Contains(t, body, want)
	}
	require.NotContains(t, body, "not run")
}
