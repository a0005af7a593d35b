package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// recipe is what a stage of a Dockerfile makes: layers of files, and how a container runs. A stage here starts from scratch
// and runs nothing, which is all that the images of Waggle do.
type recipe struct {
	layers [][]entry
	config v1.Config
}

// cook carries out a stage of a Dockerfile with the files of the folder.
func cook(dockerfile, target, folder string, args map[string]string) (*recipe, error) {
	r := &recipe{config: v1.Config{Labels: map[string]string{}, ExposedPorts: map[string]struct{}{}}}
	found := false
	for line := range strings.Lines(joined(dockerfile)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case word == "" || strings.HasPrefix(word, "#"):
		case word == "FROM":
			found = strings.HasSuffix(rest, " AS "+target)
		case found:
			if err := r.instruct(word, expanded(strings.TrimSpace(rest), args), folder); err != nil {
				return nil, fmt.Errorf("%s of %s: %w", word, target, err)
			}
		}
	}
	if r.config.Entrypoint == nil {
		return nil, fmt.Errorf("the Dockerfile has no stage %s with an entry point", target)
	}
	return r, nil
}

var (
	comment      = regexp.MustCompile(`(?m)^#.*\n`)
	continuation = regexp.MustCompile(`\\\n\s*`)
	variable     = regexp.MustCompile(`\$\{(\w+)\}`)
	assignment   = regexp.MustCompile(`([\w.]+)=("[^"]*"|\S+)`)
	option       = regexp.MustCompile(`--([a-z-]+)=(\S+)\s+`)
)

func joined(text string) string {
	return continuation.ReplaceAllString(comment.ReplaceAllString(text, ""), " ")
}

func expanded(text string, args map[string]string) string {
	return variable.ReplaceAllStringFunc(text, func(v string) string { return args[v[2:len(v)-1]] })
}

func (r *recipe) instruct(word, rest, folder string) error {
	switch word {
	case "ARG": // of the caller
		return nil
	case "COPY":
		return r.add(strings.Fields(rest), folder)
	case "USER":
		r.config.User = rest
	case "WORKDIR":
		r.config.WorkingDir = rest
	case "EXPOSE":
		for port := range strings.FieldsSeq(rest) {
			r.config.ExposedPorts[port+"/tcp"] = struct{}{}
		}
	case "ENV":
		for _, m := range assignment.FindAllStringSubmatch(rest, -1) {
			r.config.Env = append(r.config.Env, m[1]+"="+strings.Trim(m[2], `"`))
		}
	case "LABEL":
		for _, m := range assignment.FindAllStringSubmatch(rest, -1) {
			r.config.Labels[m[1]] = strings.Trim(m[2], `"`)
		}
	case "ENTRYPOINT":
		return json.Unmarshal([]byte(rest), &r.config.Entrypoint)
	case "CMD":
		return json.Unmarshal([]byte(rest), &r.config.Cmd)
	case "HEALTHCHECK":
		return r.check(rest)
	default:
		return fmt.Errorf("unknown instruction")
	}
	return nil
}

// add makes a layer of files, and of the folders above them.
func (r *recipe) add(words []string, folder string) error {
	to := words[len(words)-1]
	files := map[string]entry{}
	for _, from := range words[:len(words)-1] {
		name := strings.TrimPrefix(to, "/")
		if strings.HasSuffix(to, "/") && !strings.HasSuffix(from, "/") {
			name = path.Join(name, path.Base(from))
		}
		found, err := tree(filepath.Join(folder, filepath.FromSlash(from)), name)
		if err != nil {
			return err
		}
		for _, e := range found {
			if e.name != "/" && e.name != "./" {
				files[e.name] = e
			}
		}
	}
	for name := range maps.Clone(files) {
		for dir := path.Dir(strings.TrimSuffix(name, "/")); dir != "."; dir = path.Dir(dir) {
			if _, ok := files[dir+"/"]; !ok {
				files[dir+"/"] = entry{name: dir + "/", mode: 0o755}
			}
		}
	}
	layer := make([]entry, 0, len(files))
	for _, e := range files {
		layer = append(layer, e)
	}
	r.layers = append(r.layers, layer)
	return nil
}

// check sets the health check.
func (r *recipe) check(rest string) error {
	h := &v1.HealthConfig{Test: []string{"CMD"}}
	for _, m := range option.FindAllStringSubmatch(rest, -1) {
		if m[1] == "retries" {
			if _, err := fmt.Sscan(m[2], &h.Retries); err != nil {
				return err
			}
			continue
		}
		d, err := time.ParseDuration(m[2])
		if err != nil {
			return err
		}
		switch m[1] {
		case "interval":
			h.Interval = d
		case "timeout":
			h.Timeout = d
		case "start-period":
			h.StartPeriod = d
		default:
			return fmt.Errorf("unknown option %s", m[1])
		}
	}
	var words []string
	if err := json.Unmarshal([]byte(strings.TrimPrefix(option.ReplaceAllString(rest, ""), "CMD ")), &words); err != nil {
		return err
	}
	h.Test = append(h.Test, words...)
	r.config.Healthcheck = h
	return nil
}
