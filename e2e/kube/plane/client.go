package plane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Client applies and reads objects of any kind.
type Client struct {
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	found   *discovery.DiscoveryClient
}

// NewClient returns a client for the API.
func NewClient(c *rest.Config) (*Client, error) {
	d, err := dynamic.NewForConfig(c)
	if err != nil {
		return nil, err
	}
	found, err := discovery.NewDiscoveryClientForConfig(c)
	if err != nil {
		return nil, err
	}
	return &Client{dynamic: d, found: found, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found))}, nil
}

// Learn discards the known kinds, because new ones were added.
func (c *Client) Learn() { c.mapper.Reset() }

func (c *Client) resource(gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	m, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("kind %s: %w", gvk, err)
	}
	if m.Scope.Name() == "namespace" {
		return c.dynamic.Resource(m.Resource).Namespace(namespace), nil
	}
	return c.dynamic.Resource(m.Resource), nil
}

// Apply applies an object on the server's side, which refuses fields that it does not
// know. Applying it again changes nothing.
func (c *Client) Apply(ctx context.Context, namespace string, o *unstructured.Unstructured) error {
	r, err := c.resource(o.GroupVersionKind(), namespace)
	if err != nil {
		return err
	}
	text, err := json.Marshal(o.Object)
	if err != nil {
		return err
	}
	_, err = r.Patch(ctx, o.GetName(), types.ApplyPatchType, text, metav1.PatchOptions{
		FieldManager: "chart", FieldValidation: metav1.FieldValidationStrict,
	})
	return err
}

// Create makes an object.
func (c *Client) Create(ctx context.Context, namespace string, o *unstructured.Unstructured, sub ...string) error {
	r, err := c.resource(o.GroupVersionKind(), namespace)
	if err != nil {
		return err
	}
	_, err = r.Create(ctx, o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}, sub...)
	return err
}

// Evict asks for the eviction of a pod, which a disruption budget may refuse.
func (c *Client) Evict(ctx context.Context, namespace, pod string) error {
	r := c.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(namespace)
	_, err := r.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "policy/v1", "kind": "Eviction", "metadata": map[string]any{"name": pod, "namespace": namespace},
	}}, metav1.CreateOptions{}, "eviction")
	return err
}

// Left names all objects of a namespace, of whatever kind, but for Events, which tell of
// what was, and Endpoints, which repeat EndpointSlices.
func (c *Client) Left(ctx context.Context, namespace string) ([]string, error) {
	lists, err := c.found.ServerPreferredNamespacedResources()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if r.Kind == "Event" || r.Kind == "Endpoints" || !slices.Contains(r.Verbs, "list") {
				continue
			}
			all, err := c.dynamic.Resource(gv.WithResource(r.Name)).Namespace(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", r.Name, err)
			}
			for _, o := range all.Items {
				out = append(out, r.Kind+"/"+o.GetName())
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// List reads all objects of a kind that have the labels, into their type.
func List[T any](ctx context.Context, c *Client, gvk schema.GroupVersionKind, namespace, labels string) ([]T, error) {
	r, err := c.resource(gvk, namespace)
	if err != nil {
		return nil, err
	}
	list, err := r.List(ctx, metav1.ListOptions{LabelSelector: labels})
	if err != nil {
		return nil, err
	}
	out := make([]T, len(list.Items))
	for i, o := range list.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Until reads all objects of a kind again and again until done accepts them, and says
// what it saw last if that takes too long.
func Until[T any](ctx context.Context, c *Client, gvk schema.GroupVersionKind, namespace string, limit time.Duration, done func([]T) bool) ([]T, error) {
	var last []T
	var failed error
	err := wait.PollUntilContextTimeout(ctx, 300*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		all, err := List[T](ctx, c, gvk, namespace, "")
		if failed = err; err != nil {
			return false, nil //nolint:nilerr // a busy server may fail to answer in time; the last failure is told
		}
		last = all
		return done(all), nil
	})
	if err != nil {
		err = errors.Join(err, failed)
	}
	return last, err
}
