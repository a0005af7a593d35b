package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// program is the "waggle" of a release for every platform that install.sh knows.
const program = "#!/bin/sh\necho installed\n"

// serveRelease makes the files of a release that install.sh reads, and serves them.
func serveRelease(t *testing.T, key string) (dir, address string) {
	t.Helper()
	dir = t.TempDir()
	version := strings.TrimSpace(do(t, "version"))
	file := write(t, filepath.Join(t.TempDir(), "waggle"), program, 0o755)
	var sums []string
	for _, platform := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"} {
		name := "waggle_" + version + "_" + platform + ".tar.gz"
		do(t, "archive", filepath.Join(dir, name), "waggle="+file)
		sums = append(sums, sum(t, dir, name))
	}
	write(t, filepath.Join(dir, "checksums.txt"), strings.Join(sums, ""), 0o644)
	do(t, "sign", "-key", key, filepath.Join(dir, "checksums.txt"))
	write(t, filepath.Join(dir, "install.sh"), do(t, "install", "-key", key), 0o644)
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	return dir, server.URL
}

func sum(t *testing.T, dir, name string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sha256sum", name)
	c.Dir = dir
	out, err := c.Output()
	require.NoError(t, err)
	return string(out)
}

// install runs install.sh with the given verifiers of signatures only.
func install(t *testing.T, script, address string, verifiers ...string) (to, output string, err error) {
	t.Helper()
	bin := t.TempDir()
	for _, tool := range append(verifiers, "cat", "chmod", "cp", "curl", "cut", "grep", "gzip", "id", "mkdir", "mktemp", "mv", "rm", "sed", "sh", "sha256sum", "tail", "tar", "uname") {
		path, err := exec.LookPath(tool)
		require.NoError(t, err, "this test needs %s", tool)
		require.NoError(t, os.Symlink(path, filepath.Join(bin, tool)))
	}
	to = filepath.Join(t.TempDir(), "new", "bin")
	c := exec.CommandContext(t.Context(), "sh", script)
	c.Env = []string{"PATH=" + bin, "HOME=" + t.TempDir(), "WAGGLE_DOWNLOAD_URL=" + address, "WAGGLE_INSTALL_DIR=" + to}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err = c.Run()
	return to, out.String(), err
}

func TestInstallVerifiesWithWhatTheMachineHas(t *testing.T) {
	key := write(t, filepath.Join(t.TempDir(), "key.pem"), do(t, "key"), 0o600)
	dir, address := serveRelease(t, key)
	for _, verifier := range []string{"ssh-keygen", "openssl"} {
		to, out, err := install(t, filepath.Join(dir, "install.sh"), address, verifier)
		require.NoError(t, err, out)
		installed, err := os.ReadFile(filepath.Join(to, "waggle"))
		require.NoError(t, err)
		require.Equal(t, program, string(installed))
		require.Contains(t, out, "to your PATH")
	}
}

func TestInstallRefusesWhatIsNotSigned(t *testing.T) {
	key := write(t, filepath.Join(t.TempDir(), "key.pem"), do(t, "key"), 0o600)
	other := write(t, filepath.Join(t.TempDir(), "key.pem"), do(t, "key"), 0o600)
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		want  string
	}{
		"another archive": {func(t *testing.T, dir string) {
			files, err := filepath.Glob(filepath.Join(dir, "*.tar.gz"))
			require.NoError(t, err)
			for _, f := range files {
				write(t, f, "other", 0o644)
			}
		}, "its checksum is wrong"},
		"other checksums": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "checksums.txt"), "", 0o644)
		}, "the signature of checksums.txt is wrong"},
		"another key": {func(t *testing.T, dir string) {
			do(t, "sign", "-key", other, filepath.Join(dir, "checksums.txt"))
		}, "the signature of checksums.txt is wrong"},
		"no signature": {func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "checksums.txt.sig")))
		}, "cannot download"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, address := serveRelease(t, key)
			script := filepath.Join(dir, "install.sh")
			c.spoil(t, dir)
			for _, verifiers := range [][]string{{"ssh-keygen"}, {"openssl"}, {"ssh-keygen", "openssl"}, nil} {
				to, out, err := install(t, script, address, verifiers...)
				require.Error(t, err)
				if verifiers != nil {
					require.Contains(t, out, c.want)
				}
				require.NoFileExists(t, filepath.Join(to, "waggle"))
			}
		})
	}
}

func TestTheFormulaHasTheChecksumsOfTheArchives(t *testing.T) {
	key := write(t, filepath.Join(t.TempDir(), "key.pem"), do(t, "key"), 0o600)
	dir, _ := serveRelease(t, key)
	text := do(t, "formula", "-dist", dir)
	sums, err := os.ReadFile(filepath.Join(dir, "checksums.txt"))
	require.NoError(t, err)
	for line := range strings.Lines(string(sums)) {
		digest, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		require.Contains(t, text, `/`+name+"\"\n      sha256 \""+digest+`"`)
	}
	write(t, filepath.Join(dir, "checksums.txt"), "", 0o644)
	require.ErrorContains(t, run(t.Context(), &bytes.Buffer{}, []string{"formula", "-root", checkout, "-dist", dir}), "checksums.txt lacks waggle_")
}
