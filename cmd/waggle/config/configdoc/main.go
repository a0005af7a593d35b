// Command configdoc writes docs/CONFIGURATION.md from the descriptions of the settings, so that the page always agrees with
// the program.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
)

const intro = `# Configuration

<!-- Generated from cmd/waggle/config by "make generate". Do not edit. -->

Settings come from four sources. The stronger ones come first:

1. flags (` + "`waggle up --help`" + ` lists them),
2. environment variables,
3. one YAML file, named by ` + "`--config FILE` or `WAGGLE_CONFIG`" + `; or a folder, of which all
   files ` + "`*.yaml`" + ` are read by name, the later ones over the earlier ones. Without
   either it is the file ` + "`waggle.yaml`" + ` of the working folder, if it exists: then the variables of
   ` + "`.env`" + ` beside it count as well, unless they are set (` + "`waggle init`" + ` writes both),
4. defaults.

A key of the file that is not in the tables below is refused, with its line. Lists
in environment variables are separated by commas. Durations are written with a unit:
` + "`500ms`, `30s`, `24h`" + `. ` + "`waggle up --print-config`" + ` prints what is in force as YAML, secrets
redacted; ` + "`waggle doctor`" + ` checks it against reality.

The files are read again while a process runs, when they change and on SIGHUP: ` + "`auth`" + ` is used at
once (OPERATIONS.md, Keys of clients), everything else from the next start on.
`

const example = `
## Example

` + "```yaml" + `
addr: 0.0.0.0:9000
model: openai:gpt-4.1-mini
providers:
  openai:
    base_url: http://127.0.0.1:8000/v1
auth:
  api_keys:
    - id: laptop
      sha256: 0000000000000000000000000000000000000000000000000000000000000000
      subject: alice
      tenant: acme
      roles: [user]
tools:
  servers:
    - name: everything
      command: [npx, -y, "@modelcontextprotocol/server-everything"]
      network: true
      timeout: 30s
teams:
  - name: research
    coordinator: Lead
    members:
      - {name: Lead, role: gives the work to the others}
      - {name: Analyst, tools: [workspace/*], auto_execute_tools: true}
      - {name: Reviewer, capabilities: [reviewing]}
` + "```" + `
`

func main() {
	out := flag.String("out", "", "file to write")
	flag.Parse()
	if err := os.WriteFile(*out, []byte(page()), 0o644); err != nil { //nolint:gosec // documentation is public
		fmt.Fprintln(os.Stderr, "configdoc:", err)
		os.Exit(1)
	}
}

func page() string {
	c := config.Default()
	c.Addr = config.DefaultAddr
	var b strings.Builder
	b.WriteString(intro)
	section := "-"
	for _, f := range config.Fields(&c) {
		s, key := split(f.Path)
		if s != section {
			section = s
			head(&b, section)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", key, code(f.Env), standard(f), cell(f.Doc))
	}
	b.WriteString(example)
	return b.String()
}

// unset matches the phrase in a setting's meaning that names the default.
var unset = regexp.MustCompile(`(?i)\b(?:(?:0|empty) = (?:the )?|default: (?:the )?)([^.;]+)`)

// standard returns the effective default of a setting. Many settings default to zero and leave the number to the code that
// uses them; the meaning names it then.
func standard(f config.Field) string {
	v := f.Value()
	if v != "" && v != "0" && v != "0s" {
		return code(v)
	}
	if m := unset.FindStringSubmatch(f.Doc); m != nil {
		return cell(strings.TrimSpace(m[1]))
	}
	return code(v)
}

// split separates the section from the key: "tools.servers[].name" is key "name"
// of section "tools.servers[]".
func split(path string) (section, key string) {
	i := strings.LastIndex(path, ".")
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+1:]
}

func head(b *strings.Builder, section string) {
	title := "Top level"
	switch {
	case strings.HasSuffix(section, "[]"):
		title = "Each of `" + strings.TrimSuffix(section, "[]") + "`"
	case section != "":
		title = "`" + section + "`"
	}
	fmt.Fprintf(b, "\n## %s\n\n| Key | Environment | Default | Meaning |\n|---|---|---|---|\n", title)
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
