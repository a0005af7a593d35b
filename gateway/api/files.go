package api

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// sessionFile returns a file of the session. Its address names its contents, whose type is read from them: what a client says of
// it would have a browser run it.
func (a *API) sessionFile(r *http.Request, p auth.Principal) (any, error) {
	log, err := a.sessionLog(r, p)
	if err != nil {
		return nil, err
	}
	stored, err := a.payloads.Find(r.Context(), log, r.PathValue("digest"))
	if errors.Is(err, fault.New(fault.PayloadLost)) {
		return nil, fault.Newf(fault.NotFound, "The session has no such file, or it has expired.").Wrap(err)
	}
	if err != nil {
		return nil, err
	}
	var text string
	if err := json.Unmarshal(stored, &text); err != nil {
		return nil, fault.New(fault.NotFound).Wrap(err) // an object of another kind
	}
	body, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fault.New(fault.NotFound).Wrap(err)
	}
	out := Bytes{Body: body}
	if media := http.DetectContentType(body); (event.File{MediaType: media}).Picture() {
		out.Media = media
	}
	return out, nil
}
