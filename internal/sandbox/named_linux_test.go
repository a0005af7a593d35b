package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// tree makes files, folders (their names end with a slash) and links (a name, an arrow and the target) in a folder.
func tree(t testing.TB, entries ...string) string {
	t.Helper()
	root, err := os.MkdirTemp("", "w")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(root)) })
	require.NoError(t, os.Chmod(root, 0o755))
	for _, e := range entries {
		e = strings.ReplaceAll(e, "T/", root+"/")
		name, to, link := strings.Cut(e, " -> ")
		name, text, _ := strings.Cut(name, " = ")
		if !filepath.IsAbs(name) {
			name = root + "/" + name
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		switch {
		case link:
			require.NoError(t, os.Symlink(to, name))
		case strings.HasSuffix(name, "/"):
			require.NoError(t, os.MkdirAll(name, 0o755))
		default:
			require.NoError(t, os.WriteFile(name, []byte(text), 0o755))
		}
	}
	return root
}

// Commands of real servers, with the files and folders that they open; T is a folder with all of it, and T/home/u a home.
func TestNamed(t *testing.T) {
	root := tree(t,
		"srv/tools/server.py", "srv/tools/lib/a.py", "srv/tools/.env", "srv/native", "srv/data/a.csv", "srv/conf.json", "srv/tools/link.py -> T/srv/releases/3/server.py",
		"srv/releases/3/server.py", "srv/waggle/waggle.yaml", "srv/waggle/tool.py", "srv/state/keys/k",
		"home/u/tool.py", "home/u/.ssh/id", "home/u/.ssh/x.py", "home/u/.ssh/deep/x.py", "home/u/.config/tool/x.py", "home/u/.config/x.py", "home/u/.local/share/x.py",
		"home/u/project/dist/index.js", "home/u/project/node_modules/a/index.js", "home/u/project/package.json", "home/u/project/.env", "home/u/package.json",
		// uv: an environment whose interpreter is a link to an installation in a hidden folder
		"home/u/app/.venv/bin/python -> python3", "home/u/app/.venv/bin/python3 -> T/home/u/.local/share/uv/python/cpython-3.12/bin/python3.12",
		"home/u/app/.venv/pyvenv.cfg = home = T/home/u/.local/share/uv/python/cpython-3.12/bin\n", "home/u/app/.venv/lib/python3.12/site-packages/",
		"home/u/app/.venv/bin/server = #!T/home/u/app/.venv/bin/python\n", "home/u/app/main.py",
		"home/u/.local/share/uv/python/cpython-3.12/bin/python3.12", "home/u/.local/share/uv/python/cpython-3.12/lib/python3.12/os.py", "home/u/.local/share/uv/python/cpython-3.12/share/doc",
		"home/u/.local/bin/tool -> T/home/u/app/.venv/bin/server",
		// pyenv and nvm
		"home/u/.pyenv/shims/python3 = #!/usr/bin/env bash\n", "home/u/.pyenv/versions/3.11/bin/python3", "home/u/.pyenv/libexec/pyenv", "home/u/.pyenv/bin/pyenv", "home/u/.pyenv/.git/config",
		"home/u/.nvm/versions/node/v20/bin/node", "home/u/.nvm/versions/node/v20/bin/npx -> ../lib/node_modules/npm/bin/npx-cli.js",
		"home/u/.nvm/versions/node/v20/lib/node_modules/npm/bin/npx-cli.js = #!/usr/bin/env node\n", "home/u/.nvm/versions/node/v20/lib/node_modules/npm/package.json",
		"home/u/.nvm/versions/node/v20/include/node/node.h", "home/u/.nvm/versions/node/v20/README.md", "home/u/.nvm/alias/default",
		// an environment that was copied, at the root of a project with secrets
		"home/u/flat/pyvenv.cfg = version = 3\nhome = T/home/u/.pyenv/versions/3.11/bin\n", "home/u/flat/bin/python", "home/u/flat/.env", "home/u/.pyenv/versions/3.11/lib/python3.11/os.py",
		// another program's folder
		"srv/other/link.py -> T/home/u/.ssh/id", "srv/other/own.py", "srv/other/venv/bin/python -> T/home/u/app/.venv/bin/python",
		// links of the program's own folder
		"srv/own/link.py -> T/home/u/.ssh/id", "srv/own/run.py", "srv/own/bin/python -> T/home/u/.pyenv/versions/3.11/bin/python3", "srv/own/pyvenv.cfg = home = T/home/u/.ssh/bin\n",
		"srv/own/tool = #!T/home/u/.ssh/id\n", "home/u/.ssh/bin/python3", "home/u/.ssh/lib/python3.9/x",
		"srv/loop -> loop",
	)
	const python, venv = "home/u/.local/share/uv/python/cpython-3.12", "home/u/app/.venv"
	uv := []string{python + "/bin", python + "/lib"}
	environment := append([]string{venv + "/bin", venv + "/lib", venv + "/pyvenv.cfg"}, uv...)
	nvm := []string{"home/u/.nvm/versions/node/v20/bin", "home/u/.nvm/versions/node/v20/include", "home/u/.nvm/versions/node/v20/lib"}
	for name, c := range map[string]struct {
		args  []string
		dir   string
		wants []string
	}{
		"a script":                     {args: []string{"/usr/bin/python3", "T/srv/tools/server.py"}, wants: []string{"srv/tools", "srv/tools/server.py"}},
		"a script behind a link":       {args: []string{"/usr/bin/python3", "T/srv/tools/link.py"}, wants: []string{"srv/releases/3", "srv/releases/3/server.py"}},
		"no script":                    {args: []string{"T/srv/native"}, wants: nil},
		"a file":                       {args: []string{"/bin/cat", "T/srv/conf.json"}, wants: []string{"srv/conf.json"}},
		"a file of an option":          {args: []string{"/bin/cat", "--config=T/srv/conf.json"}, wants: []string{"srv/conf.json"}},
		"a folder":                     {args: []string{"/bin/ls", "T/srv/data/"}, wants: []string{"srv/data"}},
		"a folder of an option":        {args: []string{"/bin/ls", "--directory", "T/srv/tools/../data"}, wants: []string{"srv/data"}},
		"what is not there":            {args: []string{"/bin/cat", "T/srv/none.py", "T/srv/loop", "word", "-x", "--y=", "https://x.example/a.py"}, wants: nil},
		"the system":                   {args: []string{"/bin/cat", "/usr/bin/env", "/usr/lib", "/", "/etc", "/tmp", "/etc/ssl"}, wants: nil},
		"a home":                       {args: []string{"/bin/ls", "T/home/u", "T/home", "T/home/u/.ssh", "T/home/u/.config", "T/home/u/.local/share"}, wants: nil},
		"a script in a home":           {args: []string{"/usr/bin/python3", "T/home/u/tool.py"}, wants: []string{"home/u/tool.py"}},
		"a script beside keys":         {args: []string{"/usr/bin/python3", "T/home/u/.ssh/deep/x.py", "T/home/u/.ssh/x.py"}, wants: []string{"home/u/.ssh/deep/x.py", "home/u/.ssh/x.py"}},
		"scripts in hidden folders":    {args: []string{"/usr/bin/python3", "T/home/u/.config/tool/x.py", "T/home/u/.config/x.py", "T/home/u/.local/share/x.py"}, wants: []string{"home/u/.config/tool", "home/u/.config/tool/x.py", "home/u/.config/x.py", "home/u/.local/share/x.py"}},
		"beside the configuration":     {args: []string{"/usr/bin/python3", "T/srv/waggle/tool.py"}, wants: []string{"srv/waggle/tool.py"}},
		"secrets":                      {args: []string{"/bin/cat", "T/srv/waggle/waggle.yaml", "T/srv/waggle", "T/srv/state", "T/srv/state/keys/k"}, wants: nil},
		"JavaScript":                   {args: []string{"/usr/bin/node", "T/home/u/project/dist/index.js"}, wants: []string{"home/u/project/dist", "home/u/project/dist/index.js", "home/u/project/node_modules", "home/u/project/package.json"}},
		"JavaScript in its own folder": {args: []string{"/usr/bin/node", "index.js"}, dir: "T/home/u/project/dist", wants: []string{"home/u/project/node_modules", "home/u/project/package.json"}},
		"an environment":               {args: []string{"T/home/u/app/.venv/bin/python", "T/home/u/app/main.py"}, wants: append([]string{"home/u/app", "home/u/app/main.py"}, environment...)},
		"a script of an environment":   {args: []string{"T/home/u/app/.venv/bin/server"}, wants: environment},
		"a link to such a script":      {args: []string{"T/home/u/.local/bin/tool"}, wants: environment},
		"an environment in its folder": {args: []string{".venv/bin/python", "main.py"}, dir: "T/home/u/app", wants: uv},
		"pyenv":                        {args: []string{"T/home/u/.pyenv/shims/python3"}, wants: []string{"home/u/.pyenv/bin", "home/u/.pyenv/libexec", "home/u/.pyenv/shims", "home/u/.pyenv/versions"}},
		"nvm":                          {args: []string{"T/home/u/.nvm/versions/node/v20/bin/node"}, wants: nvm},
		"npx": {args: []string{"T/home/u/.nvm/versions/node/v20/bin/npx"}, wants: append([]string{
			"home/u/.nvm/versions/node/v20/lib/node_modules", "home/u/.nvm/versions/node/v20/lib/node_modules/npm/bin", "home/u/.nvm/versions/node/v20/lib/node_modules/npm/package.json",
		}, nvm...)},
		"a copied environment":     {args: []string{"T/home/u/flat/bin/python"}, wants: []string{"home/u/.pyenv/versions/3.11/bin", "home/u/.pyenv/versions/3.11/lib", "home/u/flat/bin", "home/u/flat/pyvenv.cfg"}},
		"another program's folder": {args: []string{"/usr/bin/python3", "T/srv/other/link.py", "T/srv/other/own.py", "T/srv/other"}, wants: nil},
		"another program's Python": {args: []string{"T/srv/other/venv/bin/python"}, wants: nil},
		"links of its own":         {args: []string{"/usr/bin/python3", "link.py", "T/srv/own/link.py", "run.py", "../conf.json"}, dir: "T/srv/own", wants: []string{"srv/conf.json"}},
		"a Python of its own":      {args: []string{"bin/python"}, dir: "T/srv/own", wants: []string{"home/u/.pyenv/versions/3.11/bin", "home/u/.pyenv/versions/3.11/lib"}},
		"a script of its own":      {args: []string{"./tool"}, dir: "T/srv/own", wants: nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := func(s string) string { return strings.ReplaceAll(s, "T/", root+"/") }
			cmd := Command{Dir: in(c.dir), Env: []string{"PATH=" + root + "/home/u/.nvm/versions/node/v20/bin:/usr/bin"}, Settings: Settings{
				Secret: []string{root + "/srv/waggle/waggle.yaml", root + "/srv/state/keys"}, Loose: []string{root + "/srv/other"},
			}}
			for _, a := range c.args {
				cmd.Args = append(cmd.Args, in(a))
			}
			program, err := find(cmd)
			require.NoError(t, err)
			n := newNaming(cmd)
			n.homes = []string{root + "/home/u"}
			got := n.all(cmd, program)
			for i := range got {
				got[i] = strings.TrimPrefix(got[i], root+"/")
			}
			require.ElementsMatch(t, c.wants, got)
		})
	}
}

// A script that a command names imports its neighbours in a sandbox, and sees nothing of other folders.
func TestAScriptSeesItsFolder(t *testing.T) {
	t.Parallel()
	root := tree(t, "tool/lib/greet.sh = echo greeted", "tool/server.sh = . \"$(dirname \"$0\")/lib/greet.sh\"; cat \"$1\"; cat \"$2\" 2>/dev/null || echo refused", "data.csv = row", "secret.txt = key")
	for kernel, without := range map[string][]Layer{"all layers": nil, "as in a container": {Namespaces}} {
		out, err := launch(t, Command{
			Args: []string{"/bin/sh", root + "/tool/server.sh", root + "/data.csv", root + "/tool/../secret.txt"},
			Dir:  folder(t), Settings: Settings{Without: without, Secret: []string{root + "/secret.txt"}},
		})
		require.NoError(t, err, out)
		require.Equal(t, "greeted\nrowrefused\n", out, kernel)
	}
}

// Paths are followed as the kernel does, and never through a closed folder.
func TestFollowProperty(t *testing.T) {
	root := tree(t, "a/b/c/file", "a/l1 -> b", "a/l2 -> ../a/b/c", "a/b/l3 -> T/a/b/c/file", "a/b/up -> ..", "x/l4 -> T/a/b", "x/l5 -> l5", "x/y/l6 -> ../../a/l1/c")
	part := rapid.SampledFrom([]string{"a", "b", "c", "file", "l1", "l2", "l3", "up", "x", "y", "l4", "l5", "l6", "..", ".", "none"})
	n := &naming{}
	rapid.Check(t, func(t *rapid.T) {
		path := root + "/" + strings.Join(rapid.SliceOfN(part, 0, 7).Draw(t, "path"), "/")
		want, err := filepath.EvalSymlinks(path)
		got, _, ok := n.follow(path, nil)
		if err != nil {
			return // the kernel refuses to go through files; follow only has to find what exists
		}
		require.True(t, ok, path)
		require.Equal(t, want, got)
		if _, _, open := n.follow(path, []string{root + "/x"}); open {
			require.False(t, within([]string{root + "/x"}, got))
		}
	})
}
