//go:build pin

package services

import (
	_ "github.com/nats-io/nats.go/micro"
	_ "github.com/nats-io/nats-server/v2/server"
	_ "github.com/google/uuid"
	_ "github.com/rs/zerolog"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/santhosh-tekuri/jsonschema/v6"
	_ "github.com/openai/openai-go/v3"
	_ "github.com/anthropics/anthropic-sdk-go"
	_ "github.com/modelcontextprotocol/go-sdk/mcp"
	_ "github.com/cenkalti/backoff/v5"
	_ "golang.org/x/sync/errgroup"
	_ "pgregory.net/rapid"
	_ "go.uber.org/goleak"
	_ "github.com/stretchr/testify/require"
	_ "go.opentelemetry.io/otel/trace"
	_ "github.com/coreos/go-oidc/v3/oidc"
	_ "github.com/golang-jwt/jwt/v5"
	_ "go.opentelemetry.io/contrib/exporters/autoexport"
	_ "github.com/synadia-io/orbit.go/jetstreamext"
	_ "github.com/waggle-dev/waggle/proto-schemas/id"
)
