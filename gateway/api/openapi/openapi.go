// Package openapi describes the routes of the API in an OpenAPI document.
package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Document returns the OpenAPI 3.1 document of the routes below the prefix. Its schemas are those of proto-schemas/api.
func Document[H any](prefix string, routes []Route[H]) ([]byte, error) {
	schemas, err := components()
	if err != nil {
		return nil, err
	}
	paths := map[string]object{}
	for _, r := range routes {
		path := prefix + r.Path
		if paths[path] == nil {
			paths[path] = object{}
		}
		op, err := r.operation(schemas)
		if err != nil {
			return nil, err
		}
		paths[path][strings.ToLower(r.Method)] = op
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err = e.Encode(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Waggle HTTP API", "version": "1",
			"description": "Sessions, tasks, teams and the swarm of a Waggle gateway. Bodies may gain members. An installation without " +
				"authentication needs no credentials. Stored events have the schemas of " + prefix + "/schemas/event.",
		},
		"servers": []object{{"url": "/"}},
		"paths":   paths,
		"components": object{
			"schemas": schemas,
			"securitySchemes": object{
				"token": object{"type": "http", "scheme": "bearer", "description": "An API key or a JWT."},
				"key":   object{"type": "apiKey", "in": "header", "name": "X-API-Key"},
			},
		},
		"security": []object{{"token": []string{}}, {"key": []string{}}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the OpenAPI document: %w", err)
	}
	return b.Bytes(), nil
}
