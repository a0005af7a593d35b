// Package plane starts a real Kubernetes control plane on the loopback address: etcd,
// kube-apiserver, kube-controller-manager and kube-scheduler, and kwok, which plays the
// nodes. All of them are built from the Go module proxy, once for each version.
package plane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// program is one binary of the control plane. Its version has to be that of the module
// which builds it.
type program struct {
	name    string
	version string
	module  string // folder below build
	pkg     string
	ldflags string
}

const kubernetes = "v1.36.3"

// stamped tells a binary of Kubernetes its version, on which what it serves depends.
const stamped = "-X k8s.io/component-base/version.gitVersion=" + kubernetes

var programs = []program{
	{"etcd", "v3.7.3", "etcd", "go.etcd.io/etcd/server/v3", ""},
	{"kube-apiserver", kubernetes, "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", stamped},
	{"kube-controller-manager", kubernetes, "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager", stamped},
	{"kube-scheduler", kubernetes, "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler", stamped},
	{"kwok", "v0.8.0", "kubernetes", "sigs.k8s.io/kwok/cmd/kwok", ""},
	{Helm, "v3.22.0", "tools", "helm.sh/helm/v3/cmd/helm", ""},
	{Generator, "v0.23.0", "tools", "sigs.k8s.io/controller-tools/cmd/controller-gen", ""},
}

// Programs that are built in addition to the control plane.
const (
	Helm      = "helm"
	Generator = "controller-gen" // makes definitions from the Go types of custom resources
)

// Build builds what the cache does not have, one package at a time at the lowest
// priority that still gets on, and returns the binaries by name. modules is the folder
// with the modules that build them.
func Build(ctx context.Context, modules, cache string, log io.Writer) (map[string]string, error) {
	out := map[string]string{}
	for _, p := range programs {
		file, err := filepath.Abs(filepath.Join(cache, p.name+"-"+p.version))
		if err != nil {
			return nil, err
		}
		out[p.name] = file
		if _, err := os.Stat(file); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		began := time.Now()
		if err := p.build(ctx, modules, file, log); err != nil {
			return nil, fmt.Errorf("build %s: %w", p.name, err)
		}
		_, _ = fmt.Fprintf(log, "built %s %s in %s\n", p.name, p.version, time.Since(began).Round(time.Second))
	}
	return out, nil
}

func (p program) build(ctx context.Context, modules, file string, log io.Writer) error {
	cmd := exec.CommandContext(ctx, "nice", "-n", "15", "go", "build", "-trimpath", "-buildvcs=false", //nolint:gosec // constants of this file
		"-ldflags", "-s -w "+p.ldflags, "-o", file, p.pkg)
	cmd.Dir = filepath.Join(modules, p.module)
	// One package at a time: compiling Kubernetes takes 2 GB as it is.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-p=1", "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = log, log
	return cmd.Run()
}

// stages returns what kwok does with pods and nodes: files of its own module.
func stages(ctx context.Context, modules string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-json", "sigs.k8s.io/kwok")
	cmd.Dir, cmd.Env = filepath.Join(modules, "kubernetes"), append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("find kwok: %w", err)
	}
	var m struct{ Dir string }
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	var out []string
	for _, name := range []string{
		"node/fast/node-initialize", "node/heartbeat-with-lease/node-heartbeat-with-lease",
		"pod/fast/pod-ready", "pod/fast/pod-complete", "pod/fast/pod-delete",
	} {
		out = append(out, filepath.Join(m.Dir, "kustomize/stage", name+".yaml"))
	}
	return out, nil
}
