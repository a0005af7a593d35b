module github.com/waggle-dev/waggle/proto-schemas

go 1.26.0
