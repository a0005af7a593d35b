//go:build pin

package internalpin

import (
	_ "github.com/nats-io/nats.go/jetstream"
	_ "github.com/nats-io/nats-server/v2/server"
	_ "github.com/google/uuid"
	_ "github.com/rs/zerolog"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/prometheus/client_golang/prometheus/testutil/promlint"
	_ "github.com/coreos/go-oidc/v3/oidc"
	_ "github.com/golang-jwt/jwt/v5"
	_ "golang.org/x/sync/errgroup"
	_ "pgregory.net/rapid"
	_ "go.uber.org/goleak"
	_ "github.com/stretchr/testify/require"
	_ "go.opentelemetry.io/otel/trace"
	_ "go.opentelemetry.io/otel/sdk/trace"
	_ "go.opentelemetry.io/otel/semconv/v1.41.0"
	_ "go.opentelemetry.io/contrib/exporters/autoexport"
	_ "github.com/synadia-io/orbit.go/jetstreamext"
	_ "github.com/waggle-dev/waggle/proto-schemas/id"
	_ "github.com/go-json-experiment/json"
)
