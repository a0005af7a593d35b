package project_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/project"
)

func read(t *testing.T, names ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(names...))
	require.NoError(t, err)
	return string(text)
}

func TestEveryTemplateIsComplete(t *testing.T) {
	t.Parallel()
	names := []string{project.Init}
	for _, one := range project.Templates {
		names = append(names, one.Name)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "below", "folder")
			written, err := project.Write(dir, name)
			require.NoError(t, err)
			for _, f := range written {
				text := read(t, dir, f)
				require.NotRegexp(t, "@[A-Z0-9_]+@", text, f)
				info, err := os.Stat(filepath.Join(dir, f))
				require.NoError(t, err)
				mode := os.FileMode(0o644)
				switch {
				case strings.HasSuffix(f, ".sh"):
					mode = 0o755
				case f == ".env" || f == "secret.txt":
					mode = 0o600
				}
				require.Equal(t, mode, info.Mode().Perm()|mode&0o44, f) // as far as the umask lets it
			}
			if name != project.Init {
				require.Contains(t, read(t, dir, "README.md"), "waggle ")
			}

			before := read(t, dir, written[1])
			require.NoError(t, os.Remove(filepath.Join(dir, written[0])))
			_, err = project.Write(dir, name)
			var exists *project.ExistsError
			require.ErrorAs(t, err, &exists)
			require.ElementsMatch(t, written[1:], exists.Files)
			require.NoFileExists(t, filepath.Join(dir, written[0]), "nothing is written")
			require.Equal(t, before, read(t, dir, written[1]))
		})
	}
	_, known := project.Find(project.Init)
	require.False(t, known)
	_, err := project.Write(t.TempDir(), "none")
	require.Error(t, err)
}

// TestTheSettingsAreValid as they are, with every setting that is only shown, and in the container.
func TestTheSettingsAreValid(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := project.Write(dir, project.Init)
	require.NoError(t, err)
	settings := read(t, dir, project.Settings)
	shown := regexp.MustCompile(`(?m)^#( {2,})?(\S.*)$`).ReplaceAllString(settings, "$1$2")
	shown = regexp.MustCompile(`(?m)^# .*\n`).ReplaceAllString(shown, "")
	require.NotContains(t, shown, "\n#")
	all := filepath.Join(dir, "all.yaml")
	require.NoError(t, os.WriteFile(all, []byte(shown), 0o600))
	for _, name := range []string{filepath.Join(dir, project.Settings), all} {
		l, err := config.Load(config.Input{File: name, Env: func(v string) (string, bool) { return "key", v == "ANTHROPIC_API_KEY" }})
		require.NoError(t, err)
		require.NoError(t, l.Validate(config.For{Roles: config.Roles, Embedded: true}), name)
		require.Equal(t, "demo", l.Model)
		require.Equal(t, name == all, len(l.Teams) > 0)
	}

	var compose struct {
		Services map[string]struct {
			Image   string
			Volumes []string
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, dir, "compose.yaml")), &compose))
	mounted := t.TempDir() // the folder /settings of the container
	for _, v := range compose.Services["waggle"].Volumes {
		from, to, _ := strings.Cut(strings.TrimSuffix(v, ":ro"), ":")
		if strings.HasPrefix(to, "/settings/") {
			require.NoError(t, os.WriteFile(filepath.Join(mounted, filepath.Base(to)), []byte(read(t, dir, from)), 0o600))
		}
	}
	l, err := config.Load(config.Input{File: mounted})
	require.NoError(t, err)
	require.NoError(t, l.Validate(config.For{Roles: config.Roles, Embedded: true}))
	require.Equal(t, "0.0.0.0:9000", l.Addr)
	require.Len(t, l.Auth.APIKeys, 1)
}

// TestTheVersionsAreThoseOfTheRepository: of the packages that a project takes, and of the image.
func TestTheVersionsAreThoseOfTheRepository(t *testing.T) {
	t.Parallel()
	root := "../../.."
	type manifest struct {
		Version                       string
		Dependencies, DevDependencies map[string]string
	}
	parse := func(names ...string) (m manifest) {
		require.NoError(t, json.Unmarshal([]byte(read(t, names...)), &m))
		return m
	}
	version := parse(root, "sdk/typescript/client/package.json").Version
	examples := parse(root, "examples/package.json")
	for _, name := range []string{"chat-page", "typescript-agent"} {
		m := parse("templates", name, "package.json")
		for _, all := range []map[string]string{m.Dependencies, m.DevDependencies} {
			for dependency, at := range all {
				require.Equal(t, examples.Dependencies[dependency], at, "%s of %s", dependency, name)
			}
		}
	}
	require.Contains(t, read(t, root, "sdk/python/pyproject.toml"), `version = "`+version+`"`)
	require.Equal(t, "waggle-sdk=="+version+"\n", read(t, "templates/python-agent/requirements.txt"))
	require.Contains(t, read(t, "templates/init/compose.yaml"), "waggle:"+version+"\n")
}

func TestAFolderWithSettingsIsEntered(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"WAGGLE_CONFIG", "WAGGLE_TOKEN", "OPENAI_API_KEY"} {
		t.Setenv(name, "") // restores it
		require.NoError(t, os.Unsetenv(name))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, project.Environment), []byte("OPENAI_API_KEY='a b' # c\nWAGGLE_TOKEN=x\n"), 0o600))
	require.NoError(t, project.Enter(dir))
	require.Empty(t, os.Getenv("WAGGLE_TOKEN"), "there are no settings")

	settings := filepath.Join(dir, project.Settings)
	require.NoError(t, os.WriteFile(settings, nil, 0o600))
	t.Setenv("WAGGLE_TOKEN", "mine")
	require.NoError(t, project.Enter(dir))
	require.Equal(t, settings, os.Getenv("WAGGLE_CONFIG"))
	require.Equal(t, "a b", os.Getenv("OPENAI_API_KEY"))
	require.Equal(t, "mine", os.Getenv("WAGGLE_TOKEN"))

	require.NoError(t, os.WriteFile(filepath.Join(dir, project.Environment), []byte("no list\n"), 0o600))
	require.ErrorContains(t, project.Enter(dir), "NAME=value")
	require.NoError(t, os.Remove(filepath.Join(dir, project.Environment)))
	require.NoError(t, project.Enter(dir))
}
