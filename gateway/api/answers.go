package api

import (
	"net/http"

	"github.com/waggle-dev/waggle/gateway/api/openapi"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
)

// Answers that several routes have.

func json200(about string, body any) []openapi.Answer {
	return []openapi.Answer{{Status: http.StatusOK, About: about, Type: body}}
}

func accepted() []openapi.Answer {
	return json200("A service carries the request out soon after.", wire.Accepted{})
}

// taken is the answer to a request with an outcome.
func taken(about string) []openapi.Answer {
	return []openapi.Answer{{Status: http.StatusAccepted, About: about + " A repeat with the same id has the same response.", Type: wire.Accepted{}}}
}

var (
	ifNoneMatch = []openapi.Parameter{{Name: "If-None-Match", About: "ETags that the client has.", Type: "string"}}
	notModified = openapi.Answer{Status: http.StatusNotModified, About: "The ETag matches."}
)
