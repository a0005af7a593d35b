// Command conform serves the cases of package sdk until its standard input ends, and prints where. Runners in other languages start it.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/waggle-dev/waggle/sdk/go/internal/judge"
)

func main() {
	j, err := judge.Start()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer j.Close()
	_, _ = fmt.Fprintln(os.Stdout, j.URL())
	_, _ = io.Copy(io.Discard, os.Stdin)
}
