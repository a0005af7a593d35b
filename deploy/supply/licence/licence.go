// Package licence recognises the licences of modules and refuses those that may not ship.
package licence

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licenseclassifier/v2/assets"
)

// Permissive lists the licences that may ship. MPL-2.0 is a copyleft of single files: Waggle
// ships such modules unchanged, and their sources are public.
var Permissive = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0"}

// licenceFile matches the names of files that hold a licence.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([-._].*)?$`)

// Classifier returns a function that returns the licences of the module in a folder. It
// refuses a module without a licence file, one with a text that it does not recognise, and
// one with a licence that may not ship.
func Classifier() (func(dir string) ([]string, error), error) {
	c, err := assets.DefaultClassifier()
	if err != nil {
		return nil, fmt.Errorf("load licences: %w", err)
	}
	return func(dir string) ([]string, error) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("read module: %w", err)
		}
		var found []string
		for _, e := range entries {
			if e.IsDir() || !licenceFile.MatchString(e.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Clean(filepath.Join(dir, e.Name())))
			if err != nil {
				return nil, fmt.Errorf("read licence: %w", err)
			}
			var here []string
			for _, m := range c.Match(text).Matches {
				if m.MatchType == "License" {
					here = append(here, m.Name)
				}
			}
			if len(here) == 0 {
				return nil, fmt.Errorf("%s holds no known licence", e.Name())
			}
			found = append(found, here...)
		}
		slices.Sort(found)
		return allowed(slices.Compact(found))
	}, nil
}

// noticeFile matches the names of files that have to accompany a copy of a module.
var noticeFile = regexp.MustCompile(`(?i)^notice([-._].*)?$`)

// Texts returns the licences and notices of the module in a folder.
func Texts(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("read module: %w", err)
	}
	var texts []string
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) && !noticeFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Clean(filepath.Join(dir, e.Name())))
		if err != nil {
			return "", fmt.Errorf("read licence: %w", err)
		}
		texts = append(texts, strings.TrimSpace(string(text)))
	}
	if len(texts) == 0 {
		return "", errors.New("found no licence")
	}
	return strings.Join(texts, "\n\n"), nil
}

// allowed returns the licences, unless one of them may not ship.
func allowed(licences []string) ([]string, error) {
	if len(licences) == 0 {
		return nil, errors.New("found no licence")
	}
	for _, l := range licences {
		if !slices.Contains(Permissive, l) {
			return nil, fmt.Errorf("%s is not one of %s", l, strings.Join(Permissive, ", "))
		}
	}
	return licences, nil
}
