// Package crd finds the definitions of custom resources that the chart makes, in the Go
// modules of those who define them, and judges objects as strictly as an API server
// does that was asked to.
package crd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// source is a file of a module.
type source struct{ module, file string }

// sources are the definitions by kind.
var sources = map[string]source{
	"ScaledObject": {"github.com/kedacore/keda/v2@v2.21.0", "config/crd/bases/keda.sh_scaledobjects.yaml"},
	"HTTPRoute":    {"sigs.k8s.io/gateway-api@v1.4.0", "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"},
}

// Kinds are those whose definitions are known.
func Kinds() []string { return []string{"ScaledObject", "HTTPRoute"} }

// Read returns the text of a kind's definition. The module is downloaded unless it was
// before.
func Read(ctx context.Context, kind string) ([]byte, error) {
	s, ok := sources[kind]
	if !ok {
		return nil, fmt.Errorf("no definition of %s is known", kind)
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", s.module) //nolint:gosec // a constant of this file
	cmd.Dir, cmd.Env = os.TempDir(), append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	out, err := cmd.Output()
	var answer struct{ Dir, Error string }
	if json.Unmarshal(out, &answer) == nil && answer.Error != "" {
		return nil, fmt.Errorf("download %s: %s", s.module, answer.Error)
	}
	if err != nil {
		return nil, fmt.Errorf("download %s: %w", s.module, err)
	}
	return os.ReadFile(filepath.Join(answer.Dir, s.file))
}

// operator are the types of the Prometheus operator. Its definitions are not in the module
// with the types, and are made from those: by the generator that the operator uses.
const operator = "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

// OperatorKinds are those of the operator that the chart makes.
func OperatorKinds() []string { return []string{"PrometheusRule", "ServiceMonitor"} }

// Generate makes the definitions of OperatorKinds with the binary of controller-gen and
// returns their texts. dir has to be empty.
func Generate(ctx context.Context, generator, dir string) ([][]byte, error) {
	cmd := exec.CommandContext(ctx, generator, "crd", "paths="+operator, "output:crd:dir="+dir) //nolint:gosec // built by package plane
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("generate definitions: %w\n%s", err, out)
	}
	var all [][]byte
	for _, kind := range OperatorKinds() {
		text, err := os.ReadFile(filepath.Join(dir, "monitoring.coreos.com_"+strings.ToLower(kind)+"s.yaml")) //nolint:gosec // just made
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, nil
}

// Validator judges objects of one kind.
type Validator struct{ schema *jsonschema.Schema }

// New returns the validator of a kind's newest version that is served.
func New(ctx context.Context, kind string) (*Validator, error) {
	text, err := Read(ctx, kind)
	if err != nil {
		return nil, err
	}
	var def apiextensions.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &def); err != nil {
		return nil, fmt.Errorf("definition of %s: %w", kind, err)
	}
	for _, v := range def.Spec.Versions {
		if v.Storage {
			return compile(kind, v.Schema.OpenAPIV3Schema)
		}
	}
	return nil, fmt.Errorf("definition of %s: no version is stored", kind)
}

func compile(kind string, props *apiextensions.JSONSchemaProps) (*Validator, error) {
	text, err := json.Marshal(props)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	closeObjects(doc)
	c := jsonschema.NewCompiler()
	if err := c.AddResource(kind+".json", doc); err != nil {
		return nil, err
	}
	schema, err := c.Compile(kind + ".json")
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", kind, err)
	}
	return &Validator{schema: schema}, nil
}

// closeObjects refuses fields that a schema does not name, wherever it names any.
func closeObjects(node any) {
	switch n := node.(type) {
	case []any:
		for _, v := range n {
			closeObjects(v)
		}
	case map[string]any:
		_, named := n["properties"].(map[string]any)
		_, others := n["additionalProperties"]
		if named && !others && n["type"] == "object" && n["x-kubernetes-preserve-unknown-fields"] != true {
			n["additionalProperties"] = false
		}
		for _, v := range n {
			closeObjects(v)
		}
	}
}

// Check reports what is wrong with an object.
func (v *Validator) Check(object map[string]any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return v.schema.Validate(doc)
}
