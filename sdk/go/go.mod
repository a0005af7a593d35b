module github.com/waggle-dev/waggle/sdk/go

go 1.26.0

require (
	github.com/coder/websocket v1.8.15
	github.com/waggle-dev/waggle/proto-schemas v0.0.0-00010101000000-000000000000
)

replace github.com/waggle-dev/waggle/proto-schemas => ../../proto-schemas
