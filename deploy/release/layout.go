package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// refName is the annotation of a layout that holds the tag.
const refName = "org.opencontainers.image.ref.name"

// writeLayout writes an image, or an index of images, as a .tar of an OCI layout.
func writeLayout(file string, artefact mutate.Appendable, tag string, at time.Time) error {
	dir, err := os.MkdirTemp("", "layout")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("write layout: %w", err)
	}
	tagged := layout.WithAnnotations(map[string]string{refName: tag})
	switch a := artefact.(type) {
	case v1.ImageIndex:
		err = p.AppendIndex(a, tagged)
	case v1.Image:
		err = p.AppendImage(a, tagged)
	default:
		err = fmt.Errorf("unknown artefact %T", a)
	}
	if err != nil {
		return fmt.Errorf("write artefact: %w", err)
	}
	entries, err := tree(dir, "")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := tarred(&b, entries[1:], at); err != nil { // without the folder itself
		return err
	}
	return publish(file, b.Bytes())
}

// pushCmd pushes the artefact of a layout. The credentials are those of "docker login", or REGISTRY_USER and
// REGISTRY_PASSWORD.
func pushCmd(ctx context.Context, c *command, args []string) (err error) {
	plain := c.Bool("plain-http", false, "push to a registry without TLS")
	if err := c.Parse(args); err != nil {
		return err
	}
	var options []name.Option
	if *plain {
		options = append(options, name.Insecure)
	}
	ref, err := name.ParseReference(c.Arg(1), append(options, name.StrictValidation)...)
	if err != nil {
		return fmt.Errorf("parse reference: %w", err)
	}
	dir, err := os.MkdirTemp("", "layout")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	packed, err := os.ReadFile(c.Arg(0))
	if err != nil {
		return err
	}
	if err := untar(bytes.NewReader(packed), dir); err != nil {
		return fmt.Errorf("unpack %s: %w", c.Arg(0), err)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return fmt.Errorf("read layout: %w", err)
	}
	login := remote.WithAuthFromKeychain(authn.DefaultKeychain)
	if user := os.Getenv("REGISTRY_USER"); user != "" {
		login = remote.WithAuth(&authn.Basic{Username: user, Password: os.Getenv("REGISTRY_PASSWORD")})
	}
	digest, err := push(ref, index, login, remote.WithContext(ctx))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.out, "%s@%s\n", ref.Context(), digest)
	return err
}

// push pushes the only artefact of a layout and returns its digest.
func push(ref name.Reference, index v1.ImageIndex, options ...remote.Option) (v1.Hash, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return v1.Hash{}, fmt.Errorf("read index: %w", err)
	}
	if len(manifest.Manifests) != 1 {
		return v1.Hash{}, fmt.Errorf("the layout has %d artefacts", len(manifest.Manifests))
	}
	digest := manifest.Manifests[0].Digest
	if manifest.Manifests[0].MediaType.IsIndex() {
		images, err := index.ImageIndex(digest)
		if err != nil {
			return digest, fmt.Errorf("read images: %w", err)
		}
		return digest, remote.WriteIndex(ref, images, options...)
	}
	image, err := index.Image(digest)
	if err != nil {
		return digest, fmt.Errorf("read image: %w", err)
	}
	return digest, remote.Write(ref, image, options...)
}

// untar unpacks files and folders.
func untar(from io.Reader, dir string) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	t := tar.NewReader(from)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		switch {
		case h.Typeflag == tar.TypeXGlobalHeader: // git's, with the commit
			continue
		case h.FileInfo().IsDir():
			err = root.MkdirAll(h.Name, 0o750)
		default:
			var content []byte
			if content, err = io.ReadAll(t); err == nil {
				err = root.WriteFile(h.Name, content, 0o600)
			}
		}
		if err != nil {
			return fmt.Errorf("unpack %s: %w", h.Name, err)
		}
	}
}
