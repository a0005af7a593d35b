package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// imageCmd makes an image of a stage of the Dockerfile, for each architecture with a folder of files.
func imageCmd(_ context.Context, c *command, args []string) error {
	target := c.String("target", "", "stage of deploy/docker/Dockerfile")
	out := c.String("out", "", "the archive of an OCI layout to write")
	version := c.String("version", "", "version of the image")
	commit := c.String("commit", "", "commit of the image")
	if err := c.Parse(args); err != nil {
		return err
	}
	at, err := c.time()
	if err != nil {
		return err
	}
	dockerfile, err := c.read("deploy", "docker", "Dockerfile")
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arg := range c.Args() {
		arch, folder, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q is not ARCHITECTURE=FOLDER", arg)
		}
		r, err := cook(string(dockerfile), *target, folder, map[string]string{"VERSION": *version, "COMMIT": *commit, "CREATED": c.stamp})
		if err != nil {
			return err
		}
		platform := v1.Platform{OS: "linux", Architecture: arch}
		image, err := r.image(platform, at)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	return writeLayout(*out, index, *version, at)
}

// image returns the image of a recipe.
func (r *recipe) image(p v1.Platform, at time.Time) (v1.Image, error) {
	created := v1.Time{Time: at}
	image, err := mutate.ConfigFile(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		&v1.ConfigFile{OS: p.OS, Architecture: p.Architecture, Created: created, Config: r.config, RootFS: v1.RootFS{Type: "layers"}})
	if err != nil {
		return nil, fmt.Errorf("configure image: %w", err)
	}
	for _, entries := range r.layers {
		var b bytes.Buffer
		if err := tarred(&b, entries, at); err != nil {
			return nil, err
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil },
			tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
		if err != nil {
			return nil, fmt.Errorf("make layer: %w", err)
		}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: created, CreatedBy: "waggle release"}}); err != nil {
			return nil, fmt.Errorf("append layer: %w", err)
		}
	}
	return image, nil
}

// rootsCmd prints the root certificates that Mozilla trusts for servers. Some have limits that a file cannot express: these
// are left out.
func rootsCmd(_ context.Context, c *command, args []string) error {
	if err := c.Parse(args); err != nil {
		return err
	}
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(c.out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return err
		}
	}
	return nil
}
