package schema

import (
	"strings"
)

// translate writes keywords of older drafts as the later ones do, and empty maps of languages that cannot tell them from
// lists. Nothing is lost by it.
func (m *mender) translate() {
	m.translateDraft()
	for _, p := range surveyed(m.root).places {
		exclusive(p.object, "exclusiveMinimum", "minimum")
		exclusive(p.object, "exclusiveMaximum", "maximum")
		for key := range mapped {
			if list, ok := p.object[key].([]any); ok && len(list) == 0 {
				p.object[key] = map[string]any{}
			}
		}
		if list, ok := p.object["items"].([]any); ok {
			items(p.object, list, m.draft)
		}
		if _, named := p.object["$id"]; !named && p.path != "" {
			delete(p.object, "$schema")
		}
	}
}

// translateDraft reads a document of an unknown draft as the newest, and one of draft 3 to 5 as draft 7.
func (m *mender) translateDraft() {
	root, ok := m.root.(map[string]any)
	if !ok || root["$schema"] == nil {
		return
	}
	named, _ := root["$schema"].(string)
	_, name, _ := strings.Cut(strings.TrimSuffix(named, "#"), "://")
	switch name {
	case "json-schema.org/schema", "json-schema.org/draft/2020-12/schema":
		return
	case "json-schema.org/draft/2019-09/schema":
		m.draft = draft2019
		return
	case "json-schema.org/draft-06/schema", "json-schema.org/draft-07/schema":
		m.draft = draft67
		return
	}
	if strings.HasPrefix(name, oldDrafts) {
		root["$schema"], m.draft = draft7, draft67
		return
	}
	delete(root, "$schema")
	m.note("/$schema", "the draft is unknown; the schema is read as one of 2020-12")
}

// exclusive translates the flag of draft 4 that excludes a limit.
func exclusive(object map[string]any, flag, limit string) {
	on, ok := object[flag].(bool)
	if !ok {
		return
	}
	delete(object, flag)
	if number, ok := object[limit]; ok && on {
		object[flag] = number
		delete(object, limit)
	}
}

// items translates a list of schemas for the first items.
func items(object map[string]any, list []any, draft generation) {
	switch {
	case len(list) == 0:
		delete(object, "items")
	case draft == draft2020 && object["prefixItems"] == nil:
		object["prefixItems"] = list
		delete(object, "items")
		if rest, ok := object["additionalItems"]; ok {
			object["items"] = rest
		}
	}
}
