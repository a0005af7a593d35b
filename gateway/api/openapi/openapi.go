// Package openapi describes the routes of the API in an OpenAPI document.
package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Document returns the OpenAPI 3.1 document of the routes below the prefix. Its schemas are those of proto-schemas/api.
// tags say what the groups of operations are about.
func Document(prefix string, routes []Route, tags []Tag) ([]byte, error) {
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
		op, err := r.operation(prefix, schemas)
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
			"description": "Sessions, tasks, teams and the swarm of a Waggle gateway. Bodies may gain members. Stored events have the schemas of " +
				prefix + "/schemas/event. Credentials: an API key or a JWT, as in `curl -H \"Authorization: Bearer $KEY\"`, or in X-API-Key; an " +
				"installation without authentication needs none. `GET " + prefix + "/me` says who they are of. docs/HTTP.md walks from the first " +
				"message to an answered question. The requests of AG-UI below /agui are on the page docs/PROTOCOL-AGUI.md, with the schemas of " +
				prefix + "/schemas/agui.",
			"license": object{"name": "Apache License 2.0", "identifier": "Apache-2.0"},
		},
		"servers": []object{{"url": "/"}},
		"tags":    tags,
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
