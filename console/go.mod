module github.com/waggle-dev/waggle/console

go 1.26.0

ignore (
	./node_modules
	./src
)

require github.com/stretchr/testify v1.12.1

require go.yaml.in/yaml/v3 v3.0.5 // indirect
