package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "supply:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("want sbom, page or notices")
	}
	modules, err := shipped(ctx)
	if err != nil {
		return err
	}
	switch flags := flag.NewFlagSet(args[0], flag.ContinueOnError); args[0] {
	case "sbom":
		version := flags.String("version", "devel", "version of the binary")
		built := flags.String("time", "", "time of the commit, RFC 3339; empty: the SBOM has none")
		if err := flags.Parse(args[1:]); err != nil {
			return fmt.Errorf("parse flags: %w", err)
		}
		bom, err := sbom(flags.Arg(0), *version, *built, modules)
		if err != nil {
			return err
		}
		return encode(os.Stdout, bom)
	case "page", "notices":
		if err := flags.Parse(args[1:]); err != nil {
			return fmt.Errorf("parse flags: %w", err)
		}
		var text string
		if args[0] == "page" {
			text, err = page(modules)
		} else {
			text, err = notices(ctx, modules)
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(flags.Arg(0), []byte(text), 0o644); err != nil { //nolint:gosec // documentation is public
			return fmt.Errorf("write %s: %w", args[0], err)
		}
		return nil
	}
	return fmt.Errorf("unknown command %q", args[0])
}
