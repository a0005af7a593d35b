package config

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func write(t testing.TB, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "waggle.yaml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func env(m map[string]string) func(string) (string, bool) {
	return func(k string) (string, bool) { v, ok := m[k]; return v, ok }
}

var everything = For{Roles: Roles, Embedded: true}

func TestDefaultsAreValid(t *testing.T) {
	l, err := Load(Input{})
	require.NoError(t, err)
	require.NoError(t, l.Validate(everything))
	require.Equal(t, DefaultAddr, l.Addr)
	require.Equal(t, "demo", l.Model)
	require.Equal(t, FromDefault, l.Source("addr"))
}

func TestNothingListensByDefaultWithoutTheGateway(t *testing.T) {
	l, err := Load(Input{})
	require.NoError(t, err)
	require.NoError(t, l.Validate(For{Roles: []string{RoleWorker}}))
	require.Empty(t, l.Addr)
}

// The strongest of any subset of sources sets an option.
func TestPrecedence(t *testing.T) {
	options := map[string]string{
		"addr": "WAGGLE_ADDR", "data": "WAGGLE_DATA", "log.level": "WAGGLE_LOG_LEVEL",
		"nats.url": "WAGGLE_NATS", "worker.concurrency": "WAGGLE_WORKER_CONCURRENCY", "session.ttl": "WAGGLE_SESSION_TTL",
	}
	value := func(path string, source Source) string {
		n := map[Source]int{FromFile: 1, FromEnv: 2, FromFlag: 3}[source]
		switch path {
		case "worker.concurrency":
			return fmt.Sprint(n)
		case "session.ttl":
			return fmt.Sprintf("%dm0s", n)
		}
		return "from-" + string(source)
	}
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		vars, flags, want := map[string]string{}, map[string]string{}, map[string]Source{}
		var file strings.Builder
		for path, name := range options {
			want[path] = FromDefault
			if rapid.Bool().Draw(t, path+" in file") {
				section, key, nested := strings.Cut(path, ".")
				if nested {
					fmt.Fprintf(&file, "%s: {%s: %s}\n", section, key, value(path, FromFile))
				} else {
					fmt.Fprintf(&file, "%s: %s\n", path, value(path, FromFile))
				}
				want[path] = FromFile
			}
			if rapid.Bool().Draw(t, path+" in environment") {
				vars[name], want[path] = value(path, FromEnv), FromEnv
			}
			if rapid.Bool().Draw(t, path+" as flag") {
				flags[path], want[path] = value(path, FromFlag), FromFlag
			}
		}
		name := filepath.Join(dir, "waggle.yaml")
		require.NoError(t, os.WriteFile(name, []byte(file.String()), 0o600))
		l, err := Load(Input{File: name, Env: env(vars), Flags: flags})
		require.NoError(t, err)
		for _, f := range Fields(&l.Config) {
			source, ours := want[f.Path]
			if !ours {
				continue
			}
			require.Equal(t, source, l.Source(f.Path), f.Path)
			if source != FromDefault {
				require.Equal(t, value(f.Path, source), f.Value(), f.Path)
			}
		}
	})
}

func TestUnknownKeysAreRefusedWithTheirLine(t *testing.T) {
	for text, want := range map[string]string{
		"addr: 127.0.0.1:1\nadr: x\n":                      `line 2: unknown key "adr"`,
		"gateway:\n  read_limt: 5\n":                       `line 2: unknown key "read_limt" in gateway`,
		"providers:\n  openai:\n    key: x\n":              `line 3: unknown key "key" in providers.`,
		"tools:\n  servers:\n  - name: a\n    comand: x\n": `line 4: unknown key "comand" in tools.servers[]`,
		"addr: a\naddr: b\n":                               "line 2",
		"shutdown: 30\n":                                   "write a unit",
		"worker: {concurrency: many}\n":                    "line 1",
		"addr: a\n---\naddr: b\n":                          "more than one YAML document",
	} {
		_, err := Load(Input{File: write(t, text)})
		require.ErrorContains(t, err, want, text)
	}
	_, err := Load(Input{File: filepath.Join(t.TempDir(), "none.yaml")})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestTheFilesOfAFolderAreReadByName(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"10-all.yaml":  "model: openai:x\nlog: {level: debug}\nteams: [{name: a, coordinator: b}, {name: c, coordinator: d}]\n",
		"20-role.yaml": "log: {format: json}\nmodel: demo\nteams: [{name: e, coordinator: f}]\n",
		"notes.txt":    "not: read\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	l, err := Load(Input{File: dir})
	require.NoError(t, err)
	require.Equal(t, Log{Level: "debug", Format: "json"}, l.Log)
	require.Equal(t, "demo", l.Model)
	require.Equal(t, []Team{{Name: "e", Coordinator: "f"}}, l.Teams, "a list is replaced")
	require.Equal(t, FromFile, l.Source("log.level"))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "30.yaml"), []byte("modell: x\n"), 0o600))
	_, err = Load(Input{File: dir})
	require.ErrorContains(t, err, `30.yaml: line 1: unknown key "modell"`)
}

func TestEmptyFileMeansDefaults(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "gateway:\n"} {
		l, err := Load(Input{File: write(t, text)})
		require.NoError(t, err, text)
		require.NoError(t, l.Validate(everything), text)
	}
}

func TestBadTextIsRefusedByName(t *testing.T) {
	for path, text := range map[string]string{"worker.concurrency": "x", "session.ttl": "5", "tools.builtin": "maybe", "gateway.message_rate": "fast"} {
		_, err := Load(Input{Flags: map[string]string{path: text}})
		require.ErrorContains(t, err, path)
	}
	_, err := Load(Input{Env: env(map[string]string{"WAGGLE_SESSION_TTL": "soon"})})
	require.ErrorContains(t, err, "session.ttl (environment WAGGLE_SESSION_TTL)")
}

func TestValidateNamesTheOption(t *testing.T) {
	for text, want := range map[string]string{
		"addr: nowhere":                                "addr:",
		"addr: 127.0.0.1:99999":                        "addr:",
		"addr: 0.0.0.0:9000":                           "auth.api_keys",
		"addr: ':9000'":                                "auth.api_keys",
		"data: ''":                                     "data:",
		"workspace: ''":                                "workspace:",
		"profile: fast":                                "profile:",
		"model: gpt":                                   "model:",
		"model: 'openai:'":                             "model:",
		"model: openai:x":                              "providers.openai:",
		"model: anthropic:x":                           "ANTHROPIC_API_KEY",
		"log: {level: loud}":                           "log.level:",
		"log: {format: xml}":                           "log.format:",
		"nats: {addr: '0.0.0.0:4222'}":                 "nats.addr:",
		"nats: {replicas: 2}":                          "nats.replicas:",
		"nats: {replicas: 3}":                          "nats.replicas:",
		"session: {ttl: -1h}":                          "session.ttl:",
		"session: {state_keys: [short]}":               "session.state_keys: key 1",
		"worker: {concurrency: -1}":                    "worker.concurrency:",
		"models: {prices: [{input: 1}]}":               "models.prices[0].model:",
		"models: {prices: [{model: a, input: -1}]}":    "models.prices[0].input:",
		"models: {prices: [{model: a, output: .inf}]}": "models.prices[0].output:",
		"models: {prices: [{model: a}, {model: a}]}":   "models.prices[1].model:",
		"gateway: {message_rate: -1}":                  "gateway.message_rate:",
		"auth: {api_keys: [{id: a}]}":                  "auth.api_keys[0].sha256:",
		"auth: {jwt: {issuer: x}}":                     "auth.jwt:",
		"auth: {jwt: {jwks_url: ftp://}}":              "auth.jwt.jwks_url:",
		"auth: {oidc: {client_id: x}}":                 "auth.oidc:",
		"auth: {oidc: {token: x}}":                     "auth.oidc.token:",
		"auth: {jwt: {issuer: 'http://id.example', audience: a, jwks_url: 'https://id.example'}, oidc: {client_id: x}}":               "auth.jwt.issuer:",
		"auth: {jwt: {issuer: 'https://id.example', audience: a, jwks_url: 'https://id.example'}, oidc: {client_id: x, scopes: [a]}}": "auth.oidc.scopes:",
		"tools: {servers: [{name: a b, command: [x]}]}":                                      "tools.servers[0].name:",
		"tools: {servers: [{name: a, command: [x], url: 'http://y'}]}":                       "tools.servers[0]:",
		"tools: {servers: [{name: a, command: [x]}, {name: a, command: [x]}]}":               "tools.servers[1].name:",
		"tools: {servers: [{name: workspace, command: [x]}]}":                                "tools.servers[0].name:",
		"tools: {servers: [{name: a, command: [x], timeout: -5s}]}":                          "tools.servers[0]:",
		"providers: {openai: {base_url: 'file:///etc', api_key: k}}\nmodel: openai:x":        "providers.openai.base_url:",
		"auth: {api_keys: [{id: a, sha256: zz, subject: s, tenant: 'a.b', roles: [admin]}]}": "auth.api_keys[0].tenant:",
	} {
		l, err := Load(Input{File: write(t, text)})
		require.NoError(t, err, text)
		require.ErrorContains(t, l.Validate(everything), want, text)
	}
}

func TestServeNeedsANATSAddress(t *testing.T) {
	for _, url := range []string{"127.0.0.1:4222", "http://x:1", "nats://a:1,nonsense"} {
		l, err := Load(Input{Flags: map[string]string{"nats.url": url}})
		require.NoError(t, err)
		require.ErrorContains(t, l.Validate(For{Roles: []string{RoleSession}}), "nats.url:", url)
	}
}

func TestParseRoles(t *testing.T) {
	got, err := ParseRoles([]string{"gateway", "worker"})
	require.NoError(t, err)
	require.Equal(t, []string{RoleWorker, RoleGateway}, got)
	_, err = ParseRoles([]string{"gatway"})
	require.ErrorContains(t, err, `unknown role "gatway"`)
	_, err = ParseRoles(nil)
	require.Error(t, err)
}

const canary = "CANARY-s3cr3t"

func TestSecretsAreNeverShown(t *testing.T) {
	l, err := Load(Input{
		File: write(t, `
providers: {openai: {api_key: `+canary+`1, base_url: 'https://u:`+canary+`2@host/v1'}}
auth: {api_keys: [{id: k, sha256: `+canary+`3}]}
nats: {url: 'nats://me:`+canary+`4@a:4222,nats://`+canary+`5@b:4222,not a url `+canary+`@x'}
session: {state_keys: [`+canary+`a, `+canary+`b]}
tools: {servers: [{name: a, url: 'https://x:`+canary+`6@h/', env: {TOKEN: `+canary+`7}, headers: {Authorization: `+canary+`8}}]}
`),
		Env: env(map[string]string{"ANTHROPIC_API_KEY": canary + "9"}),
	})
	require.NoError(t, err)
	require.Equal(t, canary+"9", l.Providers.Anthropic.APIKey.Reveal())
	var b bytes.Buffer
	require.NoError(t, l.Print(&b))
	fmt.Fprint(&b, l.Settings())
	require.NotContains(t, b.String(), canary)
	require.Contains(t, b.String(), "TOKEN: '[redacted]'")
	require.Contains(t, l.Tools.Servers[0].URL, canary, "printing must not change the configuration")
	if err := l.Validate(For{Roles: Roles}); err != nil {
		require.NotContains(t, err.Error(), canary)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		require.NotContains(t, fmt.Sprintf(format, l.Auth), canary, format)
		require.NotContains(t, fmt.Sprintf(format, l.Tools.Servers[0].Env), canary, format)
		require.NotContains(t, fmt.Sprintf(format, l.Session), canary, format)
		require.NotContains(t, fmt.Sprintf(format, l.Providers.OpenAI.APIKey), fmt.Sprintf("%x", canary), format)
	}
	for _, f := range Fields(&l.Config) {
		if f.Type() == "secret" {
			require.NotContains(t, f.Value(), canary)
		}
	}
}

func TestPipelineSettingsAreJudged(t *testing.T) {
	for text, want := range map[string]string{
		"on_busy: wait": "on_busy", "max_concurrent: 0": "max_concurrent", "max_concurrent: 101": "max_concurrent",
		"task_attempts: 0": "task_attempts", "task_attempts: 11": "task_attempts", "retry_backoff: 0s": "retry_backoff",
		"confirm_timeout: 10ms": "confirm_timeout", "task_timeout: 0s": "task_timeout",
	} {
		l, err := Load(Input{File: write(t, "pipeline: {"+text+"}\n")})
		require.NoError(t, err, text)
		use := For{Roles: []string{RolePipeline}}
		require.ErrorContains(t, l.Validate(use), "pipeline."+want+":", text)
		require.NoError(t, l.Validate(For{Roles: []string{RoleSession}}), text)
	}
}

func TestStateKeysComeFromOnePlace(t *testing.T) {
	key := strings.Repeat("k", 32)
	l, err := Load(Input{
		Env:   env(map[string]string{"WAGGLE_SESSION_STATE_KEYS": key + "1, " + key + "2"}),
		Flags: map[string]string{"session.state_key_file": "keys"},
	})
	require.NoError(t, err)
	require.Equal(t, []Secret{Secret(key + "1"), Secret(key + "2")}, l.Session.StateKeys)
	require.ErrorContains(t, l.Validate(everything), "set either")
	l.Session.StateKeyFile = ""
	require.NoError(t, l.Validate(everything))
}

// Printed configuration can be read again and means the same, except for secrets.
func TestPrintedConfigurationCanBeRead(t *testing.T) {
	l, err := Load(Input{Flags: map[string]string{"session.ttl": "90m", "gateway.allowed_origins": "https://a, https://b"}})
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, l.Print(&b))
	again, err := Load(Input{File: write(t, b.String())})
	require.NoError(t, err)
	require.Equal(t, 90*time.Minute, again.Session.TTL)
	require.Equal(t, []string{"https://a", "https://b"}, again.Gateway.AllowedOrigins)
	var c bytes.Buffer
	require.NoError(t, again.Print(&c))
	require.Equal(t, b.String(), c.String())
}

// TestSettingsNameTheirSource and no entry of a list or table: such an entry belongs to one tenant, key or tool.
func TestSettingsNameTheirSource(t *testing.T) {
	l, err := Load(Input{
		File: write(t, `
session: {ttl: 2h}
auth: {api_keys: [{id: canary1, subject: canary2}, {id: canary3}]}
quota: {tenants: [{tenant: canary4}]}
swarm: {names: {canary6: [canary7]}}
`),
		Env: env(map[string]string{"WAGGLE_MODEL": "other"}), Flags: map[string]string{"addr": "127.0.0.1:1", "nats.url": "nats://me:canary5@a:4222"},
	})
	require.NoError(t, err)
	all := map[string]Setting{}
	for _, s := range l.Settings() {
		require.NotContains(t, s.Value, "canary")
		require.NotContains(t, all, s.Path)
		all[s.Path] = s
	}
	for path, want := range map[string]Setting{
		"session.ttl":   {Value: "2h0m0s", Source: FromFile},
		"auth.api_keys": {Value: "2 entries", Source: FromFile},
		"quota.tenants": {Value: "1 entry", Source: FromFile},
		"model":         {Value: "other", Source: FromEnv},
		"addr":          {Value: "127.0.0.1:1", Source: FromFlag},
		"nats.url":      {Value: "nats://redacted@a:4222", Source: FromFlag},
		"swarm.names":   {Value: "1 entry", Source: FromFile},
		"tools.servers": {Source: FromDefault},
		"task.tries":    {Value: "3", Source: FromDefault},
	} {
		want.Path = path
		require.Equal(t, want, all[path])
	}
}

func TestEveryOptionIsDocumentedAndHasItsOwnVariable(t *testing.T) {
	c := Default()
	seen := map[string]string{}
	for _, f := range Fields(&c) {
		require.NotEmpty(t, f.Doc, f.Path)
		if f.Env != "" {
			require.Empty(t, seen[f.Env], f.Path)
			seen[f.Env] = f.Path
		}
	}
	for name, path := range map[string]string{
		"WAGGLE_ADDR": "addr", "WAGGLE_NATS": "nats.url", "WAGGLE_NATS_ADDR": "nats.addr",
		"OPENAI_API_KEY": "providers.openai.api_key", "OPENAI_BASE_URL": "providers.openai.base_url",
		"ANTHROPIC_API_KEY": "providers.anthropic.api_key", "WAGGLE_MODEL": "model",
	} {
		require.Equal(t, path, seen[name])
	}
}

func TestTheLanguageIsJudged(t *testing.T) {
	for text, good := range map[string]bool{"": true, "zh_CN": true, "en_US": true, "de_DE": false} {
		l, err := Load(Input{File: write(t, "gateway: {language: \""+text+"\"}\n")})
		require.NoError(t, err)
		err = l.Validate(For{Roles: []string{RoleGateway}})
		if good {
			require.NotContains(t, fmt.Sprint(err), "gateway.language")
		} else {
			require.ErrorContains(t, err, "gateway.language:")
		}
	}
}

func TestURLsKeepTheirSecrets(t *testing.T) {
	for in, want := range map[string]string{
		"nats://a:1,nats://b:2":              "nats://a:1,nats://b:2",
		"nats://me:CANARY@a:1, nats://b:2":   "nats://redacted@a:1, nats://b:2",
		"https://x/mcp?key=CANARY&v=CANARY2": "https://x/mcp?key=redacted&v=redacted",
		"https://x/mcp?CANARY":               "https://x/mcp?redacted",
		"https://me:CANARY@x/?k=CANARY#frag": "https://redacted@x/?k=redacted#frag",
		"::CANARY@":                          "[redacted]",
	} {
		require.Equal(t, want, RedactURLs(in), in)
	}
}

// TestQuotasAreShipped: without settings the shipped limits hold; 0 and -1 take one away, and a printed configuration says so.
func TestQuotasAreShipped(t *testing.T) {
	for text, want := range map[string]int64{"": 2000, "quota: {principal: {sessions: 7}}": 7, "quota: {principal: {sessions: 0}}": 0, "quota: {principal: {sessions: -1}}": 0} {
		l, err := Load(Input{File: write(t, text)})
		require.NoError(t, err)
		require.NoError(t, l.Validate(For{Roles: []string{RoleSession}}))
		for range 2 {
			p := l.Quota.Policy()
			require.Equal(t, want, p.Principal.Sessions, text)
			require.Equal(t, []int64{2000, 200, 20_000_000}, []int64{p.Principal.Tasks, p.Principal.Teams, p.Principal.Tokens})
			require.Equal(t, []int64{10_000, 10_000, 1000, 100_000_000, 10 << 30, 1000}, []int64{p.Tenant.Sessions, p.Tenant.Tasks, p.Tenant.Teams, p.Tenant.Tokens, p.Tenant.WorkspaceBytes, p.Tenant.Children})
			var b bytes.Buffer
			require.NoError(t, l.Print(&b))
			l, err = Load(Input{File: write(t, b.String())})
			require.NoError(t, err)
		}
	}
	l, err := Load(Input{File: write(t, "quota: {principal: {workspace_bytes: 5, tasks: -2}}")})
	require.NoError(t, err)
	err = l.Validate(For{Roles: []string{RoleSession}})
	require.ErrorContains(t, err, "quota.principal.workspace_bytes:")
	require.ErrorContains(t, err, "quota.principal.tasks:")
}
