package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path"

	"github.com/waggle-dev/waggle/gateway/api/openapi"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// artifacts are the files that members of teams make.
type artifacts struct {
	*parts
	logs logs
}

// maxArtifactPages bounds the pages of maxLogScan events that one request looks for an artifact in.
const maxArtifactPages = 20

// errNoArtifact is the answer about an artifact that the log does not have, or not any more.
var errNoArtifact = fault.Newf(fault.NotFound, "This file does not exist in the log, or its contents were not kept or have expired.")

func (f artifacts) routes() []Route {
	return []Route{{
		Method: "GET", Path: "/artifacts/{kind}/{id}/{artifact}", ID: "showArtifact", Tag: "events", Summary: "Fetch a file that a member of a team made, as it was then.",
		Query:   []openapi.Parameter{{Name: "version", About: "Digest of the object of one artifact.* event; by default the newest of the last 100,000 events.", Type: "string"}},
		Answers: []openapi.Answer{{Status: http.StatusOK, About: "The file, as a download.", Media: respond.MediaBytes}},
		Faults:  logFaults(fault.NotFound), Handler: f.server.ServePage(f.show),
	}}
}

// show returns a file that a member made, as it was then: its contents are an object of the member's log.
func (f artifacts) show(r *http.Request, who *edge.Client) (any, error) {
	log, first, last, err := f.logs.named(r, who)
	if err != nil {
		return nil, err
	}
	if log.Kind != id.KindMember && log.Kind != id.KindTeam {
		return nil, errNoArtifact // only members make files
	}
	name, version := r.PathValue("artifact"), r.URL.Query().Get("version")
	var stored json.RawMessage
	if version != "" && log.Kind != id.KindTeam {
		stored, err = f.payloads.Find(r.Context(), log, version)
	} else {
		page := logPage{logs: f.logs, log: log, limit: eventLimit.Maximum, first: first.Sequence, last: last.Sequence}
		page.filter.types = []string{string(event.ArtifactPersisted), string(event.ArtifactUpdated)}
		stored, err = f.found(r, who, page, name, version)
	}
	if errors.Is(err, fault.New(fault.PayloadLost)) {
		return nil, errNoArtifact.Wrap(err)
	}
	if err != nil {
		return nil, err
	}
	var file event.ArtifactFile
	if json.Unmarshal(stored, &file) != nil || file.ArtifactID != name {
		return nil, errNoArtifact // an object of another kind, or of another file
	}
	return respond.Bytes{Name: path.Base(file.Path), Body: file.Contents, Newer: version == ""}, nil
}

// found loads the newest version of an artifact that a log tells of, or the named one.
func (f artifacts) found(r *http.Request, who *edge.Client, page logPage, name, version string) (json.RawMessage, error) {
	is := func(d event.Artifact) bool {
		return d.ArtifactID == name && (version == "" || d.Object != nil && d.Object.Digest == version)
	}
	ref, err := page.newest(r.Context(), is)
	if err != nil {
		return nil, err
	}
	of, err := subject.LogOf(page.log.Tenant, ref.Log)
	if err != nil {
		return nil, errNoArtifact.Wrap(err)
	}
	// The log of a team repeats the events of its members. A log that was imported may name objects of others.
	if of != page.log && (page.log.Kind != id.KindTeam || of.Kind != id.KindMember) {
		return nil, errNoArtifact
	}
	if err := who.Sees(r.Context(), of, errNoArtifact); err != nil {
		return nil, err
	}
	return f.payloads.Get(r.Context(), of.Tenant, ref)
}

// newest returns the object of the newest artifact that is wanted.
func (p logPage) newest(ctx context.Context, is func(event.Artifact) bool) (event.ObjectRef, error) {
	before := p.last + 1
	for range maxArtifactPages {
		found, err := p.older(ctx, before)
		if err != nil {
			return event.ObjectRef{}, err
		}
		ref, known := newestOf(found, is)
		switch {
		case known && ref != nil:
			return *ref, nil
		case known || !found.More:
			return event.ObjectRef{}, errNoArtifact
		}
		if before, err = position(found.Next, p.last+1, "before"); err != nil {
			return event.ObjectRef{}, err
		}
	}
	return event.ObjectRef{}, errNoArtifact
}

// newestOf returns the object of the newest artifact of a page that is wanted, nil for one without contents.
func newestOf(page wire.LogPage, is func(event.Artifact) bool) (ref *event.ObjectRef, known bool) {
	for i := len(page.Events) - 1; i >= 0; i-- {
		var e event.Event
		var d event.Artifact
		if json.Unmarshal(page.Events[i], &e) != nil {
			continue
		}
		if in := event.Unwrap(e); in.Decode(&d) == nil && is(d) {
			return d.Object, true
		}
	}
	return nil, false
}
