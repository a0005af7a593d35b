package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/workspace"
	"github.com/waggle-dev/waggle/services/worker/teamtools"
)

// equip gives a member of a team its tools. Everybody else has those of the tool servers.
func (j *job) equip() error {
	a := j.state.Agent
	if a == nil {
		return nil
	}
	team, err := id.ParseEntity(a.TeamID)
	if err != nil {
		return fmt.Errorf("team of agent %s: %w", a.MemberID, err)
	}
	j.caller, err = j.s.teams.Toolbox(teamtools.Member{
		Tenant: j.tenant, Team: team, Name: a.Name, AgentID: a.MemberID, RunID: j.runID, Colleagues: a.Colleagues, Tools: a.Tools,
	}, j.s.deps.Tools)
	return err
}

// agentID is the id of the member that is worked for, empty in a session.
func (j *job) agentID() string {
	if j.state.Agent == nil {
		return ""
	}
	return j.state.Agent.MemberID
}

// otherModel is the model of a member's definition that replaces the worker's model.
func (j *job) otherModel() string {
	if j.state.Agent == nil {
		return ""
	}
	return j.state.Agent.Model
}

// model is the specification of the model that is asked.
func (j *job) model() string { return model.Asked(j.s.deps.Model, j.otherModel()) }

// products are the events of a member's call besides its result: a to-do list, a file. They precede
// the result, so that a worker that dies between the two leaves a call without a result, and no
// product is missing.
func (j *job) products(o outcome) []event.Data {
	if j.state.Agent == nil {
		return nil
	}
	switch {
	case o.tool.Kind == teamtools.Kind && o.tool.Own == cmd.ToolUpdateTodos:
		list, err := teamtools.Todos(o.call.Arguments)
		if err != nil {
			return nil // the tool has refused it
		}
		return []event.Data{event.TodosUpdatedData{RunID: j.runID, CallID: o.call.ID, Todos: list}}
	case o.tool.Kind == tools.KindMCP && o.tool.Server == tools.BuiltinServer:
		return j.artifact(o)
	}
	return nil
}

// artifact tells of the file that a call has written.
func (j *job) artifact(o outcome) []event.Data {
	file, created, ok := workspace.Written(o.tool.Own, o.call.Arguments, o.result.Text)
	if !ok {
		return nil
	}
	a := event.Artifact{
		ArtifactID: artifactID(file), AgentID: j.agentID(), RunID: j.runID, CallID: o.call.ID, Path: file, Type: artifactType(file),
	}
	if created {
		return []event.Data{event.ArtifactPersistedData{Artifact: a}}
	}
	return []event.Data{event.ArtifactUpdatedData{Artifact: a}}
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
