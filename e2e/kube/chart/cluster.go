package chart

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Secrets are the contents by name of those that the function "lookup" of templates
// finds, as it would in a cluster that has nothing else.
type Secrets map[string]map[string]string

// GetClientFor implements what Helm's engine asks for.
func (s Secrets) GetClientFor(_, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return reader{kind: kind, secrets: s}, true, nil
}

// reader answers Get. The engine calls nothing else: it would be nil.
type reader struct {
	dynamic.NamespaceableResourceInterface
	kind    string
	secrets Secrets
}

func (r reader) Namespace(namespace string) dynamic.ResourceInterface {
	if namespace != Namespace {
		r.secrets = nil
	}
	return r
}

func (r reader) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	content, ok := r.secrets[name]
	if !ok || r.kind != "Secret" {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: r.kind}, name)
	}
	data := map[string]any{}
	for k, v := range content {
		data[k] = v
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name}, "data": data,
	}}, nil
}
