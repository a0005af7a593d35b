package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// repository is where files that the site does not have can be read.
const repository = "https://github.com/waggle-dev/waggle/blob/main/"

// pageCopy is a page of the repository that the reference shows, whole or in part.
type pageCopy struct {
	from, to string
	title    string   // of the copy
	sections []string // to take besides the introduction; none = the whole page
}

var copies = []pageCopy{
	{from: "docs/CONFIGURATION.md", to: "configuration.md"},
	{from: "docs/generated/events.md", to: "events.md", title: "Events"},
	{from: "docs/generated/subjects.md", to: "subjects.md"},
	{from: "docs/generated/errors.md", to: "errors.md"},
	{from: "docs/generated/metrics.md", to: "metrics.md"},
	{from: "docs/PROTOCOL-AGUI.md", to: "protocols/ag-ui.md", title: "AG-UI", sections: []string{"Requests", "Runs", "Not served yet"}},
	{from: "docs/PROTOCOL-AISDK.md", to: "protocols/ai-sdk.md", title: "AI SDK", sections: []string{"Requests", "Messages and runs"}},
	{from: "docs/PROTOCOL-EVENTS.md", to: "protocols/server-sent-events.md", title: "Server-sent events", sections: []string{"A log", "A page of a log", "Announcements", "Several at once", "Over a WebSocket"}},
	{from: "docs/PROTOCOL-ORBIT.md", to: "protocols/orbit.md", title: "ORBIT", sections: []string{"Connect the original", "A conversation", "Additions", "Differences from the original"}},
	{from: "docs/PROTOCOL-MYAGENT.md", to: "protocols/myagent.md", title: "MyAgent", sections: []string{"Connect the original", "A conversation", "Differences from the original"}},
	{from: "docs/PROTOCOL-ASP.md", to: "protocols/agent-swarm.md", title: "Agent Swarm Protocol", sections: []string{"Connect the original", "Where this differs from the description"}},
	{from: "docs/PROTOCOL-TEAM.md", to: "protocols/teams.md", title: "AutoByteus teams", sections: []string{"Connect the original", "Sockets", "Generations of clients"}},
}

type copier struct{ root string }

func (c copier) write(p pageCopy) error {
	raw, err := os.ReadFile(filepath.Join(c.root, p.from))
	if err != nil {
		return err
	}
	text := regexp.MustCompile(`(?s)<!-- Generated.*?-->\n*`).ReplaceAllString(string(raw), "")
	if p.title != "" {
		_, rest, _ := strings.Cut(text, "\n")
		text = "# " + p.title + "\n" + rest
	}
	whole := headings(text)
	if len(p.sections) > 0 {
		if text, err = taken(text, p.sections); err != nil {
			return err
		}
		text += fmt.Sprintf("\n## The whole protocol\n\n[%s](%s%s) has every message and rule, with the tests that hold them.\n", path.Base(p.from), repository, p.from)
	}
	return write(c.root, p.to, p.from, c.adapted(p, text, whole))
}

// taken returns the introduction of a page and some of its sections.
func taken(text string, sections []string) (string, error) {
	parts := strings.Split(text, "\n## ")
	out := parts[0]
	for _, name := range sections {
		found := false
		for _, part := range parts[1:] {
			if head, _, _ := strings.Cut(part, "\n"); head == name {
				out, found = out+"\n## "+part, true
			}
		}
		if !found {
			return "", fmt.Errorf("the page has no section %q", name)
		}
	}
	return strings.TrimRight(out, "\n") + "\n", nil
}

var (
	headingLine = regexp.MustCompile(`(?m)^#{1,4} (.*)$`)
	link        = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fence       = regexp.MustCompile("^ *```")
	span        = regexp.MustCompile("`[^`]*`")
	special     = regexp.MustCompile("[\\s~`!@#$%^&*()\\-_+=\\[\\]{}|\\\\;:\"'“”‘’<>,.?/]+")
	dropped     = regexp.MustCompile(`[^\p{L}\p{N} _-]+`)
)

// headings returns the anchors of headings on the site by those on GitHub.
func headings(text string) map[string]string {
	out := map[string]string{}
	for _, m := range headingLine.FindAllStringSubmatch(text, -1) {
		out[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = slug(m[1])
	}
	return out
}

// slug is the anchor that the site gives a heading.
func slug(heading string) string {
	s := strings.ToLower(strings.Trim(special.ReplaceAllString(heading, "-"), "-"))
	if s != "" && s[0] >= '0' && s[0] <= '9' {
		s = "_" + s
	}
	return s
}

// adapted returns a text whose links lead to pages of the site, or else to the repository, and whose angle brackets are text.
func (c copier) adapted(p pageCopy, text string, whole map[string]string) string {
	here := headings(text)
	lines := strings.Split(text, "\n")
	code := false
	for n, line := range lines {
		if fence.MatchString(line) {
			code = !code
			continue
		}
		if code {
			continue
		}
		line = link.ReplaceAllStringFunc(line, func(found string) string {
			return "](" + p.target(link.FindStringSubmatch(found)[1], here, whole) + ")"
		})
		lines[n] = escaped(line)
	}
	return strings.Join(lines, "\n")
}

// escaped returns a line without angle brackets that a browser could take for elements. Addresses in them stay links.
func escaped(line string) string {
	out, last := "", 0
	bare := func(s string) string {
		return strings.NewReplacer("<http", "<http", "<", "&lt;", "{{", "&#123;&#123;").Replace(s)
	}
	for _, m := range span.FindAllStringIndex(line, -1) {
		out += bare(line[last:m[0]]) + line[m[0]:m[1]]
		last = m[1]
	}
	return out + bare(line[last:])
}

// target returns where a link of the original leads from the copy.
func (p pageCopy) target(to string, here, whole map[string]string) string {
	if strings.Contains(to, "://") {
		return to
	}
	file, anchor, _ := strings.Cut(to, "#")
	if file == "" {
		if own, ok := here[anchor]; ok {
			return "#" + own
		}
		if _, ok := whole[anchor]; ok {
			return repository + p.from + "#" + anchor
		}
		return "#" + anchor
	}
	full := path.Join(path.Dir(p.from), file)
	for _, other := range copies {
		if other.from == full && (anchor == "" || len(other.sections) == 0) {
			rel, err := filepath.Rel(path.Dir(p.to), other.to)
			if err != nil {
				break
			}
			if anchor != "" {
				rel += "#" + slug(strings.ReplaceAll(anchor, "-", " "))
			}
			return filepath.ToSlash(rel)
		}
	}
	if anchor != "" {
		full += "#" + anchor
	}
	return repository + full
}
