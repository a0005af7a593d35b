package repocheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestImagesAreLabelled runs scripts/images.sh in a repository of one commit, with programs in the
// place of go and docker: the second prints its arguments and the Dockerfile that it gets.
func TestImagesAreLabelled(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
	}
	for _, name := range []string{"scripts/images.sh", "deploy/docker/Dockerfile"} {
		write(name, read(t, name))
	}
	write("cmd/go.mod", "module example.com/cmd\n")
	write("bin/go", "#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\necho program >\"$2\"\n")
	write("bin/docker", "#!/bin/sh\nprintf '%s\\n' \"$@\" >&2\nfor context; do :; done\ncat \"$context/Dockerfile\" >&2\n")
	run := func(name string, args ...string) string {
		c := exec.CommandContext(t.Context(), name, args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null",
			"GIT_COMMITTER_DATE=2026-01-02T04:04:05+01:00", "VERSION=", "COMMIT=", "CREATED=")
		out, err := c.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	run("git", "init", "-q")
	run("git", "add", "cmd")
	run("git", "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", "cmd: begin")
	commit := strings.TrimSpace(run("git", "rev-parse", "--short=12", "HEAD"))
	run("git", "tag", "v1.2.3")

	for target, title := range map[string]string{"waggle": "waggle", "nats": "waggle-nats"} {
		built := run("sh", "scripts/images.sh", target)
		require.Equal(t, built, run("sh", "scripts/images.sh", target), "two builds of a commit")
		for _, argument := range []string{"VERSION=v1.2.3", "COMMIT=" + commit, "CREATED=2026-01-02T03:04:05Z"} {
			require.Contains(t, built, "--build-arg\n"+argument+"\n")
		}
		require.Contains(t, built, "\nARG VERSION COMMIT CREATED\nLABEL ")
		labels := map[string]string{}
		for _, m := range regexp.MustCompile(`org\.opencontainers\.image\.(\w+)="([^"]*)"`).FindAllStringSubmatch(built, -1) {
			labels[m[1]] = m[2]
		}
		require.NotEmpty(t, labels["description"])
		delete(labels, "description")
		require.Equal(t, map[string]string{
			"title": title, "source": "https://github.com/waggle-dev/waggle", "licenses": "Apache-2.0",
			"version": "${VERSION}", "revision": "${COMMIT}", "created": "${CREATED}",
		}, labels)
	}
}
