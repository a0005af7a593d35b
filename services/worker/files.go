package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/worker/card"
)

// maxImages bounds the images of one request, the newest ones: the least that a provider documents for one request is 20.
const maxImages = 20

// messages returns lines of the conversation as the model gets them, with the images that their files hold. Texts of files are
// in the lines already.
func (j *job) messages(ctx context.Context, lines []conversation.Line) ([]model.Message, error) {
	pictures := 0
	for _, l := range lines {
		for _, f := range l.Files {
			if f.Picture() {
				pictures++
			}
		}
	}
	out := make([]model.Message, 0, len(lines))
	for _, l := range lines {
		m := model.Message{Role: l.Role, Content: l.Content, ToolCalls: l.ToolCalls, ToolCallID: l.ToolCallID, IsError: l.IsError, Reasoning: l.Reasoning, PassBack: l.PassBack}
		for _, f := range l.Files {
			if f.Picture() {
				pictures--
			}
			if err := j.show(ctx, &m, f, pictures >= maxImages); err != nil {
				return nil, err
			}
		}
		out = append(out, m)
	}
	return out, nil
}

// show adds a file to a message, or says why the model does not see it.
func (j *job) show(ctx context.Context, m *model.Message, f event.File, old bool) error {
	switch {
	case f.Text():
		return nil
	case !f.Picture():
		m.Content += fmt.Sprintf("\n(This file of the type %s is not shown to you: models are given texts and images.)", f.MediaType)
		return nil
	case old:
		m.Content += "\n(This image is left out: newer ones take its place.)"
		return nil
	}
	data, err := j.image(ctx, f)
	if errors.Is(err, fault.New(fault.PayloadLost)) {
		m.Content += "\n(This image is left out: it has expired.)"
		return nil
	}
	if err == nil {
		m.Images = append(m.Images, model.Image{MediaType: f.Media(), Data: data})
	}
	return err
}

// image loads the data of an image, in base64. It has to belong to the log: a log that was imported names those of another one.
func (j *job) image(ctx context.Context, f event.File) (string, error) {
	if f.Object.Log != j.log.Ref.Local() {
		return "", fault.New(fault.PayloadLost)
	}
	if data, known := j.images[f.Object.Digest]; known {
		return data, nil
	}
	raw, err := j.s.payloads.Get(ctx, j.tenant, f.Object)
	if err != nil {
		return "", err
	}
	var data string
	if err := json.Unmarshal(raw, &data); err != nil {
		return "", fault.New(fault.PayloadLost).Wrap(err)
	}
	if j.images == nil {
		j.images = map[string]string{}
	}
	j.images[f.Object.Digest] = data
	return data, nil
}

// once remembers of what the log has told. It is safe for concurrent use.
type once struct {
	mu   sync.Mutex
	told map[string]bool
}

// maxTold bounds the memory: when it is full, the log tells everything anew.
const maxTold = 1000

// first reports whether the text has not come before.
func (o *once) first(text string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told[text] {
		return false
	}
	if o.told == nil || len(o.told) >= maxTold {
		o.told = map[string]bool{}
	}
	o.told[text] = true
	return true
}

// leftOut tells operators once which tools the model is not offered, and people in each run that has none at all.
func (j *job) leftOut(all []model.LeftOut) (out []event.Data) {
	for _, l := range all {
		if j.s.leftOut.first(j.model() + " " + l.Tool + " " + l.Reason) {
			j.s.deps.Logger.Warn().Str("log", j.log.Ref.Name()).Str("job", j.id).Str("model", j.model()).Str("tool", l.Tool).Str("reason", l.Reason).
				Msg("tool not offered to model")
			if j.model() == j.s.deps.Model.Name() {
				j.s.lacks(card.LeftOut{Tool: l.Tool, Why: l.Reason})
			}
		}
		if l.Tool == "" && !j.toolless {
			j.toolless = true
			out = append(out, event.NoticeData{
				Level: "warning", Code: event.ToolLeftOut, RunID: j.runID, Message: fmt.Sprintf("The model %s answers without tools: %s.", j.model(), l.Reason),
			})
		}
	}
	return out
}

// unseen tells people once that the model was not given images of the conversation.
func (j *job) unseen(n int) []event.Data {
	if n == 0 || j.blind {
		return nil
	}
	j.blind = true
	return []event.Data{event.NoticeData{
		Level: "warning", Code: string(fault.ModelRefused), RunID: j.runID,
		Message: fmt.Sprintf("The model %s does not take the images of this conversation (%d). It was told that they are left out.", j.model(), n),
	}}
}
