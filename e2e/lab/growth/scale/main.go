// Command scale writes the tables of docs/SCALE.md, which the simulation makes from the figures.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/waggle-dev/waggle/e2e/lab/growth/simulation"
)

//go:generate go run . -page ../../../../docs/SCALE.md

func main() {
	page := flag.String("page", "", "the page")
	flag.Parse()
	if err := write(*page); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func write(page string) error {
	text, err := os.ReadFile(page) //nolint:gosec // a page of the repository
	if err != nil {
		return err
	}
	filled, err := simulation.Current().Fill(string(text))
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(filled), 0o644) //nolint:gosec // documentation is public
}
