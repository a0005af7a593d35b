module github.com/waggle-dev/waggle/sdk/go

go 1.26.0

require (
	github.com/coder/websocket v1.8.15
	github.com/stretchr/testify v1.12.1
	github.com/waggle-dev/waggle/proto-schemas v0.1.0
	go.uber.org/goleak v1.3.0
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect

replace github.com/waggle-dev/waggle/proto-schemas => ../../proto-schemas
