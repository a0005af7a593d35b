//go:build pin

package gateway

import (
	_ "github.com/nats-io/nats.go"
	_ "github.com/coder/websocket"
	_ "github.com/google/uuid"
	_ "github.com/rs/zerolog"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/santhosh-tekuri/jsonschema/v6"
	_ "golang.org/x/time/rate"
	_ "golang.org/x/sync/errgroup"
	_ "github.com/hashicorp/golang-lru/v2"
	_ "pgregory.net/rapid"
	_ "go.uber.org/goleak"
	_ "github.com/stretchr/testify/require"
	_ "github.com/rogpeppe/go-internal/txtar"
	_ "github.com/nats-io/nats-server/v2/server"
	_ "go.opentelemetry.io/otel/trace"
	_ "github.com/coreos/go-oidc/v3/oidc"
	_ "github.com/golang-jwt/jwt/v5"
	_ "go.opentelemetry.io/contrib/exporters/autoexport"
	_ "github.com/synadia-io/orbit.go/jetstreamext"
	_ "github.com/waggle-dev/waggle/proto-schemas/id"
	_ "github.com/go-json-experiment/json"
)
