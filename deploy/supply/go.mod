module github.com/waggle-dev/waggle/deploy/supply

go 1.26.0

require (
	github.com/CycloneDX/cyclonedx-go v0.12.0
	github.com/google/licenseclassifier/v2 v2.0.0
	github.com/package-url/packageurl-go v0.1.7
	github.com/stretchr/testify v1.12.1
	golang.org/x/mod v0.41.0
)

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/sergi/go-diff v1.1.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
