module github.com/waggle-dev/waggle/docs/site

go 1.26.0

ignore (
	./.vitepress
	./node_modules
)

require (
	github.com/stretchr/testify v1.12.1
	github.com/yuin/goldmark v1.8.7
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect
