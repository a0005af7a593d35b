package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"go.yaml.in/yaml/v3"
)

// Media types of charts in registries (https://helm.sh/docs/topics/registries).
const (
	chartConfig  types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	chartContent types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// chartCmd packages the Helm chart twice: as the file that "helm install" takes, and for a registry.
func chartCmd(_ context.Context, c *command, args []string) error {
	out := c.String("out", "", "the .tgz to write")
	oci := c.String("oci", "", "the archive of an OCI layout to write")
	if err := c.Parse(args); err != nil {
		return err
	}
	at, err := c.time()
	if err != nil {
		return err
	}
	metadata, err := c.read("deploy", "helm", "waggle", "Chart.yaml")
	if err != nil {
		return err
	}
	var about map[string]any
	if err := yaml.Unmarshal(metadata, &about); err != nil {
		return fmt.Errorf("parse Chart.yaml: %w", err)
	}
	entries, err := tree(c.path("deploy", "helm", "waggle"), "waggle")
	if err != nil {
		return err
	}
	packed, err := gzipped(entries, at)
	if err != nil {
		return err
	}
	if err := publish(*out, packed); err != nil {
		return err
	}
	artefact, version, err := chart(about, packed, at)
	if err != nil {
		return err
	}
	return writeLayout(*oci, artefact, version, at)
}

// chart returns a packed chart as what registries hold.
func chart(about map[string]any, packed []byte, at time.Time) (v1.Image, string, error) {
	config, err := json.Marshal(about)
	if err != nil {
		return nil, "", fmt.Errorf("encode Chart.yaml: %w", err)
	}
	name, version, description := fmt.Sprint(about["name"]), fmt.Sprint(about["version"]), fmt.Sprint(about["description"])
	layer := static.NewLayer(packed, chartContent)
	content, err := partial.Descriptor(layer)
	if err != nil {
		return nil, "", fmt.Errorf("describe chart: %w", err)
	}
	digest, size, err := v1.SHA256(bytes.NewReader(config))
	if err != nil {
		return nil, "", fmt.Errorf("hash Chart.yaml: %w", err)
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: v1.Descriptor{MediaType: chartConfig, Digest: digest, Size: size},
		Layers: []v1.Descriptor{*content},
		Annotations: map[string]string{
			"org.opencontainers.image.created":     at.Format(time.RFC3339),
			"org.opencontainers.image.description": description,
			"org.opencontainers.image.source":      "https://github.com/waggle-dev/waggle",
			"org.opencontainers.image.title":       name,
			"org.opencontainers.image.version":     version,
		},
	})
	if err != nil {
		return nil, "", fmt.Errorf("encode manifest: %w", err)
	}
	image, err := partial.CompressedToImage(&raw{config: config, manifest: manifest, layer: layer})
	return image, version, err
}

// raw is an artefact of one layer, whose config is not that of an image.
type raw struct {
	config, manifest []byte
	layer            v1.Layer
}

var _ partial.CompressedImageCore = (*raw)(nil)

// RawConfigFile implements partial.CompressedImageCore.
func (r *raw) RawConfigFile() ([]byte, error) { return r.config, nil }

// RawManifest implements partial.CompressedImageCore.
func (r *raw) RawManifest() ([]byte, error) { return r.manifest, nil }

// MediaType implements partial.CompressedImageCore.
func (*raw) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// LayerByDigest implements partial.CompressedImageCore.
func (r *raw) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	if own, err := r.layer.Digest(); err != nil || own != h {
		return nil, errors.Join(err, fmt.Errorf("unknown layer %s", h))
	}
	return r.layer, nil
}
