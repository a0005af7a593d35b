package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"syscall"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/internal/telemetry"
)

// Flags carry the path of the setting that they override in the tag "opt". Their
// environment variables are read by package config, which is why the parser of the command line does not.

type fileFlag struct {
	Config string `help:"YAML file with the settings, or folder of such files (WAGGLE_CONFIG)." placeholder:"FILE" env:"WAGGLE_CONFIG"`
}

type natsFlags struct {
	NATS *string `name:"nats" opt:"nats.url" help:"NATS server, or several separated by commas (WAGGLE_NATS)." placeholder:"URL"`
	Data *string `opt:"data" help:"Data folder of a running \"waggle up\", for the keys of its NATS server (WAGGLE_DATA; ./data)." placeholder:"DIR"`
}

type serverFlags struct {
	processFlags
	Model *string `opt:"model" help:"demo, or PROVIDER:NAME with openai, anthropic, azure, gemini, mistral, deepseek, openrouter, ollama or vllm (WAGGLE_MODEL; demo)." placeholder:"MODEL"`
}

// processFlags are those of a process without a choice of its model.
type processFlags struct {
	fileFlag
	Addr        *string `opt:"addr" help:"Where to listen (WAGGLE_ADDR; 127.0.0.1:9000 for a gateway)." placeholder:"HOST:PORT"`
	Telemetry   *string `name:"telemetry-addr" opt:"telemetry.addr" help:"Where to serve metrics and profiles (WAGGLE_TELEMETRY_ADDR; 127.0.0.1:9464 with \"waggle up\")." placeholder:"HOST:PORT"`
	Legacy      *bool   `opt:"legacy" help:"Also listen on the ports of the protocols' original servers (WAGGLE_LEGACY)."`
	Workspace   *string `opt:"workspace" help:"Folder of the file tools (WAGGLE_WORKSPACE; ./workspace)." placeholder:"DIR"`
	LogLevel    *string `opt:"log.level" help:"trace, debug, info, warn, error or disabled (WAGGLE_LOG_LEVEL; info)." placeholder:"LEVEL"`
	LogFormat   *string `opt:"log.format" help:"json, console or auto (WAGGLE_LOG_FORMAT; auto)." placeholder:"FORMAT"`
	PrintConfig bool    `help:"Print the effective configuration, secrets redacted, and exit."`
}

// load merges the flags of a command with all other sources.
func load(file string, flags ...any) (*config.Loaded, error) {
	given := map[string]string{}
	for _, f := range flags {
		collect(reflect.ValueOf(f), given)
	}
	l, err := config.Load(config.Input{File: file, Env: os.LookupEnv, Flags: given})
	if err != nil {
		return nil, usageError{err}
	}
	return l, nil
}

func collect(v reflect.Value, given map[string]string) {
	for i := range v.NumField() {
		sf, fv := v.Type().Field(i), v.Field(i)
		if path := sf.Tag.Get("opt"); path != "" && !fv.IsNil() {
			given[path] = fmt.Sprint(fv.Elem().Interface())
		} else if sf.Anonymous {
			collect(fv, given)
		}
	}
}

// check validates the configuration for a use.
func check(l *config.Loaded, use config.For) error {
	if err := l.Validate(use); err != nil {
		return usageError{fmt.Errorf("invalid configuration:\n%w", err)}
	}
	return nil
}

// logger returns the logger for the process. Without a configured format it depends on whether
// the output is a terminal.
func logger(c config.Log, std streams) (zerolog.Logger, error) {
	format := c.Format
	if format == "auto" {
		format = telemetry.FormatJSON
		if terminal.Is(std.err) {
			format = telemetry.FormatConsole
		}
	}
	log, err := telemetry.NewLogger(std.err, c.Level, format)
	if err != nil {
		return log, usageError{errors.Join(errors.New("log"), err)}
	}
	return log, nil
}

// endable returns a context that ends when the process is asked to: by Ctrl-C, or by its supervisor.
func endable() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

// streams are the standard streams, for commands.
type streams struct {
	in       *os.File
	out, err io.Writer
}

// usageError is wrapped by errors of flags and configuration.
type usageError struct{ error }

// errSilent ends a command that has said everything.
var errSilent = errors.New("failed")
