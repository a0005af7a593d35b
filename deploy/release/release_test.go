package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	mini "aead.dev/minisign"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/require"
)

const (
	checkout = "../.."
	stamp    = "2026-11-30T12:00:00Z"
)

// do runs a command on the checkout and returns its output.
func do(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, append([]string{args[0], "-root", checkout, "-time", stamp}, args[1:]...)))
	return out.String()
}

func write(t *testing.T, file, text string, mode os.FileMode) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(text), mode))
	return file
}

func TestEveryPackageHasTheVersionOfTheChangelog(t *testing.T) {
	require.Regexp(t, `^\d+\.\d+\.\d+\n$`, do(t, "version"))
}

func TestSetWritesTheVersionIntoEveryPackage(t *testing.T) {
	root := t.TempDir()
	for _, file := range []string{
		"CHANGELOG.md", "sdk/typescript/client/package.json", "sdk/typescript/react/package.json", "sdk/python/pyproject.toml",
		"deploy/helm/waggle/Chart.yaml", "sdk/go/go.mod", "cmd/go.mod",
	} {
		text, err := os.ReadFile(filepath.Join(checkout, file))
		require.NoError(t, err)
		write(t, filepath.Join(root, file), string(text), 0o644)
	}
	require.NoError(t, run(t.Context(), io.Discard, []string{"set", "-root", root, "9.8.7"}))
	err := run(t.Context(), io.Discard, []string{"version", "-root", root})
	require.ErrorContains(t, err, "sdk/typescript/react/package.json has version 9.8.7, and CHANGELOG.md")
	for _, file := range []string{"sdk/python/pyproject.toml", "deploy/helm/waggle/Chart.yaml", "sdk/go/go.mod", "cmd/go.mod"} {
		require.ErrorContains(t, err, file+" has version 9.8.7")
	}
	write(t, filepath.Join(root, "CHANGELOG.md"), "# Changelog\n\n## 9.8.7 - 2027-01-02\n\nNew.\n\n## 0.1.0\n\nOld.\n", 0o644)
	require.NoError(t, run(t.Context(), io.Discard, []string{"version", "-root", root}))

	var notes bytes.Buffer
	require.NoError(t, run(t.Context(), &notes, []string{"notes", "-root", root, "-released"}))
	require.Equal(t, "New.\n", notes.String())
	write(t, filepath.Join(root, "CHANGELOG.md"), "## 9.8.7 - unreleased\n\nNew.\n", 0o644)
	require.ErrorContains(t, run(t.Context(), io.Discard, []string{"notes", "-root", root, "-released"}), "give it a date")
	require.ErrorContains(t, run(t.Context(), io.Discard, []string{"set", "-root", root, "v1"}), "is not a version")
}

func TestArchivesDoNotDependOnTheMachine(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	pack := func(mode os.FileMode) []byte {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "b"), "two", mode)
		write(t, filepath.Join(dir, "a", "program"), "one", mode|0o111)
		entries, err := tree(dir, "top")
		require.NoError(t, err)
		slices.Reverse(entries)
		content, err := gzipped(entries, at)
		require.NoError(t, err)
		return content
	}
	require.Equal(t, pack(0o600), pack(0o644))

	z, err := gzip.NewReader(bytes.NewReader(pack(0o600)))
	require.NoError(t, err)
	var names []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.Equal(t, at, h.ModTime.UTC())
		require.Empty(t, h.Uname)
		names = append(names, h.Name)
	}
	require.Equal(t, []string{"top/", "top/a/", "top/a/program", "top/b"}, names)
}

// layOut makes a folder with the files of an image.
func layOut(t *testing.T, program string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"waggle", "nats-server"} {
		write(t, filepath.Join(dir, name), program, 0o755)
	}
	write(t, filepath.Join(dir, "root", "etc", "ssl", "certs", "ca-certificates.crt"), do(t, "roots"), 0o644)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "root", "data"), 0o755))
	require.NoError(t, os.Chmod(filepath.Join(dir, "root", "data"), 0o777|os.ModeSticky))
	return dir
}

func TestImagesArePushedForBothArchitectures(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	dir := t.TempDir()
	first, again := filepath.Join(dir, "first.tar"), filepath.Join(dir, "again.tar")
	for _, out := range []string{first, again} {
		do(t, "image", "-target", "waggle", "-version", "1.2.3", "-commit", "abc", "-out", out, "amd64="+layOut(t, "for amd64"), "arm64="+layOut(t, "for arm64"))
	}
	one, err := os.ReadFile(first)
	require.NoError(t, err)
	two, err := os.ReadFile(again)
	require.NoError(t, err)
	require.True(t, bytes.Equal(one, two), "two builds differ")

	pushed := do(t, "push", "-plain-http", first, address.Host+"/waggle:1.2.3")
	require.Regexp(t, `/waggle@sha256:[0-9a-f]{64}\n$`, pushed)
	for _, arch := range []string{"amd64", "arm64"} {
		ref, err := name.ParseReference(address.Host+"/waggle:1.2.3", name.Insecure)
		require.NoError(t, err)
		image, err := remote.Image(ref, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
		require.NoError(t, err)
		require.NoError(t, validate.Image(image))
		config, err := image.ConfigFile()
		require.NoError(t, err)
		require.Equal(t, "65532:65532", config.Config.User)
		require.Equal(t, []string{"/usr/local/bin/waggle"}, config.Config.Entrypoint)
		require.Equal(t, []string{"CMD", "/usr/local/bin/waggle", "healthcheck"}, config.Config.Healthcheck.Test)
		require.Equal(t, 5*time.Minute, config.Config.Healthcheck.StartPeriod)
		require.Contains(t, config.Config.Env, "WAGGLE_DATA=/data")
		require.Equal(t, "1.2.3", config.Config.Labels["org.opencontainers.image.version"])
		require.Equal(t, "The backbone of multi-agent applications: gateways, services and command line", config.Config.Labels["org.opencontainers.image.description"])
		files := map[string]string{}
		for r := tar.NewReader(mutate.Extract(image)); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			body, err := io.ReadAll(r)
			require.NoError(t, err)
			files[h.Name] = string(body)
			if h.Name == "data" {
				require.Equal(t, int64(0o1777), h.Mode)
			}
		}
		require.Equal(t, "for "+arch, files["usr/local/bin/waggle"])
		require.NotContains(t, files, "usr/local/bin/nats-server")
		require.Contains(t, files["etc/ssl/certs/ca-certificates.crt"], "BEGIN CERTIFICATE")
	}
}

func TestTheImageOfNATSHasItsPorts(t *testing.T) {
	dockerfile, err := os.ReadFile(filepath.Join(checkout, "deploy", "docker", "Dockerfile"))
	require.NoError(t, err)
	r, err := cook(string(dockerfile), "nats", layOut(t, "program"), nil)
	require.NoError(t, err)
	require.Contains(t, r.config.ExposedPorts, "4222/tcp")
	require.Equal(t, []string{"--config", "/etc/nats/server.conf"}, r.config.Cmd)

	_, err = cook("FROM scratch AS a\nRUN make\nENTRYPOINT [\"/a\"]\n", "a", t.TempDir(), nil)
	require.ErrorContains(t, err, "RUN of a: unknown instruction")
	_, err = cook(string(dockerfile), "nothing", t.TempDir(), nil)
	require.ErrorContains(t, err, "no stage nothing")
}

func TestTheChartIsPushedAsHelmReadsIt(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	dir := t.TempDir()
	do(t, "chart", "-out", filepath.Join(dir, "chart.tgz"), "-oci", filepath.Join(dir, "chart.tar"))
	do(t, "push", "-plain-http", filepath.Join(dir, "chart.tar"), address.Host+"/charts/waggle:0.1.0")

	ref, err := name.ParseReference(address.Host+"/charts/waggle:0.1.0", name.Insecure)
	require.NoError(t, err)
	image, err := remote.Image(ref)
	require.NoError(t, err)
	manifest, err := image.Manifest()
	require.NoError(t, err)
	require.Equal(t, chartConfig, manifest.Config.MediaType)
	require.Equal(t, chartContent, manifest.Layers[0].MediaType)
	config, err := image.RawConfigFile()
	require.NoError(t, err)
	require.Contains(t, string(config), `"name":"waggle"`)
	layer, err := image.LayerByDigest(manifest.Layers[0].Digest)
	require.NoError(t, err)
	r, err := layer.Compressed()
	require.NoError(t, err)
	packed, err := io.ReadAll(r)
	require.NoError(t, err)
	own, err := os.ReadFile(filepath.Join(dir, "chart.tgz"))
	require.NoError(t, err)
	require.Equal(t, own, packed)
}

func TestModulesAreThoseOfTheCommit(t *testing.T) {
	dir := t.TempDir()
	do(t, "modules", "-out", dir)
	version := strings.TrimSpace(do(t, "version"))
	for _, module := range []string{"proto-schemas", "sdk/go"} {
		at := filepath.Join(dir, "github.com", "waggle-dev", "waggle", filepath.FromSlash(module), "@v")
		list, err := os.ReadFile(filepath.Join(at, "list"))
		require.NoError(t, err)
		require.Equal(t, "v"+version+"\n", string(list))
		r, err := zip.OpenReader(filepath.Join(at, "v"+version+".zip"))
		require.NoError(t, err)
		defer r.Close()
		prefix := "github.com/waggle-dev/waggle/" + module + "@v" + version + "/"
		for _, file := range []string{"LICENSE", "go.mod"} {
			_, err := r.Open(prefix + file)
			require.NoError(t, err)
		}
	}
}

func TestMinisignAcceptsTheSignature(t *testing.T) {
	dir := t.TempDir()
	key := write(t, filepath.Join(dir, "key.pem"), do(t, "key"), 0o600)
	file := write(t, filepath.Join(dir, "file"), "content", 0o644)
	do(t, "sign", "-key", key, file)
	var public mini.PublicKey
	require.NoError(t, public.UnmarshalText([]byte(do(t, "public", "-key", key))))
	signature, err := os.ReadFile(file + ".minisig")
	require.NoError(t, err)
	require.True(t, mini.Verify(public, []byte("content"), signature))
	require.False(t, mini.Verify(public, []byte("contents"), signature))
}
