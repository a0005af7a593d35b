// Package request reads the queries and bodies of requests.
package request

import (
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/waggle-dev/waggle/internal/strictjson"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// JSON returns UNSUPPORTED_MEDIA_TYPE unless the request says that its body is JSON. Pages of other origins cannot say so
// without the consent of the gateway.
func JSON(r *http.Request) error {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return fault.New(fault.MediaType).At("Content-Type").Wrap(err)
	}
	return nil
}

// Body reads the request's body, of at most limit bytes, which is JSON unless it is empty.
func Body(r *http.Request, limit int64) ([]byte, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, limit))
	_, tooBig := errors.AsType[*http.MaxBytesError](err)
	switch {
	case tooBig:
		return nil, fault.New(fault.MessageTooBig)
	case err != nil:
		return nil, fault.New(fault.BadJSON).Wrap(err)
	}
	if len(raw) > 0 {
		err = JSON(r)
	}
	return raw, err
}

// Decode reads the body strictly into a value. An empty body leaves it as it is, unless the body is required.
func Decode(r *http.Request, limit int64, into any, required bool) error {
	return decode(r, limit, into, required, strictjson.Decode)
}

// DecodeKnown is Decode that also refuses members which the value does not have. The body is required.
func DecodeKnown(r *http.Request, limit int64, into any) error {
	return decode(r, limit, into, true, strictjson.DecodeKnown)
}

func decode(r *http.Request, limit int64, into any, required bool, read func([]byte, any) error) error {
	raw, err := Body(r, limit)
	switch {
	case err != nil:
		return err
	case len(raw) > 0:
		return read(raw, into)
	case required:
		return fault.New(fault.BadJSON)
	}
	return nil
}
