// Package site has the pages of the documentation, as the site and "waggle docs" show them.
package site

import (
	"embed"
	"encoding/json"
	"fmt"
)

//go:generate go run ./referencegen

// Files are the pages, their pictures, and the icon.
//
//go:embed nav.json *.md start concepts guides reference why public
//go:embed images/console-plug.webp images/console-question-*.webp images/console-start-*.webp
var Files embed.FS

// Section is a part of the navigation.
type Section struct {
	Title  string `json:"title"`
	Folder string `json:"folder"`
	Pages  []Page `json:"pages"`
}

// Page is a page of the navigation. Its file is Link with the ending ".md".
type Page struct {
	Title string `json:"title"`
	Link  string `json:"link"`
	Pages []Page `json:"pages,omitempty"` // pages below it
}

// Navigation returns the sections that have pages.
func Navigation() ([]Section, error) {
	raw, err := Files.ReadFile("nav.json")
	if err != nil {
		return nil, fmt.Errorf("read the navigation: %w", err)
	}
	var all, out []Section
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("read the navigation: %w", err)
	}
	for _, s := range all {
		if len(s.Pages) > 0 {
			out = append(out, s)
		}
	}
	return out, nil
}
