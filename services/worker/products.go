package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/workspace"
	"github.com/waggle-dev/waggle/services/worker/teamtools"
)

// products is what calls produce in addition to their results: files, images, to-do lists.
type products struct{ *attempt }

// of are the events of a member's call besides its result: a to-do list, a file. They precede
// the result, so that a worker that dies between the two leaves a call without a result, and no
// product is missing.
func (p *products) of(ctx context.Context, o outcome) ([]event.Data, error) {
	if p.state.Agent == nil {
		return nil, nil
	}
	switch {
	case o.tool.Kind == teamtools.Kind && o.tool.Own == cmd.ToolUpdateTodos:
		list, err := teamtools.Todos(o.call.Arguments)
		if err != nil {
			return nil, nil //nolint:nilerr // the tool has refused it
		}
		return []event.Data{event.TodosUpdatedData{RunID: p.runID, CallID: o.call.ID, Todos: list}}, nil
	case o.tool.Kind == tools.KindMCP && o.tool.Server == tools.BuiltinServer:
		return p.artifact(ctx, o)
	}
	return nil, nil
}

// artifact tells of the file that a call has written. Its contents become an object of the log: the workspace is on another
// machine, and later calls change the file.
func (p *products) artifact(ctx context.Context, o outcome) ([]event.Data, error) {
	w, ok := workspace.Written(o.tool.Own, o.call.Arguments, o.result)
	if !ok {
		return nil, nil
	}
	a := event.Artifact{
		ArtifactID: artifactID(w.Path), AgentID: p.agentID(), RunID: p.runID, CallID: o.call.ID, Path: w.Path, Type: artifactType(w.Path),
	}
	lost, err := p.keep(ctx, &a, w)
	if err != nil {
		return nil, err
	}
	if w.Created {
		return append([]event.Data{event.ArtifactPersistedData{Artifact: a}}, lost...), nil
	}
	return append([]event.Data{event.ArtifactUpdatedData{Artifact: a}}, lost...), nil
}

// keep stores the contents of an artifact. Where they cannot be stored, it returns a notice for people: the file is written all
// the same.
func (p *products) keep(ctx context.Context, a *event.Artifact, w workspace.Writing) ([]event.Data, error) {
	why := fault.Newf(fault.MessageTooBig, "Files of more than %d bytes are only available in the workspace: %s.", event.MaxArtifact, w.Path)
	if w.Known && len(w.Contents) <= event.MaxArtifact {
		raw, err := json.Marshal(event.ArtifactFile{ArtifactID: a.ArtifactID, Path: w.Path, Contents: w.Contents})
		if err != nil {
			return nil, fmt.Errorf("encode the contents of %s: %w", w.Path, err)
		}
		ref, lost, err := p.put(ctx, raw, w.Path)
		if ref != nil {
			a.Size, a.Object = int64(len(w.Contents)), ref
		}
		return lost, err
	}
	return p.warn(why), nil
}

// put stores an object of the log. If it cannot be stored, put returns a notice for people.
func (p *products) put(ctx context.Context, raw []byte, what string) (*event.ObjectRef, []event.Data, error) {
	ref, err := p.s.payloads.Put(ctx, p.log.Ref, raw)
	if err == nil {
		return ref, nil, nil
	}
	why, ok := errors.AsType[*fault.Fault](err)
	if ctx.Err() != nil || !ok {
		return nil, nil, err
	}
	p.s.deps.Logger.Warn().Err(err).Stringer("log", p.log.Ref).Str("file", what).Msg("failed to store file")
	return nil, p.warn(why), nil
}

// warn tells people of a failure that harms nothing else.
func (p *products) warn(why *fault.Fault) []event.Data {
	return []event.Data{event.NoticeData{Level: "warning", Code: string(why.Code), RunID: p.runID, Message: why.Public()}}
}

// pictures stores the images of a result. An image that cannot be stored is left out, and people are told.
func (p *products) pictures(ctx context.Context, o outcome) (files []event.File, lost []event.Data, err error) {
	for _, i := range o.result.Images {
		raw, err := json.Marshal(i.Data) // in base64
		if err != nil {
			return nil, nil, fmt.Errorf("encode an image of %s: %w", o.call.Name, err)
		}
		ref, notice, err := p.put(ctx, raw, o.call.Name)
		switch {
		case err != nil:
			return nil, nil, err
		case ref == nil:
			lost = append(lost, notice...)
		default:
			files = append(files, event.File{Kind: event.FileImage, MediaType: i.MediaType, Size: len(i.Data), Object: *ref})
		}
	}
	return files, lost, nil
}

// artifactID derives an id from a path of the workspace, the same for all writers.
func artifactID(file string) string {
	sum := sha256.Sum256([]byte(file))
	return "artifact_" + hex.EncodeToString(sum[:8])
}

// artifactTypes are the types of files that are more than text, by extension.
var artifactTypes = map[string]string{
	".png": "image", ".jpg": "image", ".jpeg": "image", ".gif": "image", ".webp": "image", ".svg": "image", ".bmp": "image",
	".mp3": "audio", ".wav": "audio", ".ogg": "audio", ".flac": "audio", ".m4a": "audio",
	".mp4": "video", ".webm": "video", ".mov": "video", ".mkv": "video",
	".pdf": "pdf",
	".zip": "other", ".gz": "other", ".tar": "other", ".bin": "other", ".exe": "other",
}

func artifactType(file string) string {
	if typ, ok := artifactTypes[strings.ToLower(path.Ext(file))]; ok {
		return typ
	}
	return "file"
}
