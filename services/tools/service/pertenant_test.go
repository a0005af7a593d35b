package service_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
	mcpservers "github.com/waggle-dev/waggle/services/tools/mcp"
	"github.com/waggle-dev/waggle/services/tools/service"
)

// perTenant is a service whose server has a program for each tenant.
type perTenant struct {
	*rig
	*testing.T
	folder string
}

func newPerTenant(t *testing.T, change func(*mcpservers.Config)) perTenant {
	t.Helper()
	c := program("child", "plain")
	c.PerTenant, c.Dir = true, publicDir(t)
	if change != nil {
		change(&c)
	}
	p := perTenant{start(t, service.Config{Servers: []mcpservers.Config{c}}), t, c.Dir}
	p.await(t, "child_pid")
	return p
}

// of returns a call of the tenant.
func (p perTenant) of(tenant, tool string, a args) tools.Call {
	p.Helper()
	c := newCall(p.T, tool, a)
	var err error
	c.Tenant, err = id.ParseTenant(tenant)
	require.NoError(p, err)
	return c
}

// pid returns the process of the tenant's program.
func (p perTenant) pid(tenant string) int {
	p.Helper()
	res, err := p.Call(context.Background(), p.of(tenant, "child_pid", nil))
	require.NoError(p, err)
	n, err := strconv.Atoi(res.Text)
	require.NoError(p, err)
	return n
}

func (p perTenant) gone(pid int) {
	p.Helper()
	require.Eventually(p, func() bool { return syscall.Kill(pid, 0) != nil }, maxWait, tick, "the program does not end")
}

// TestEachTenantHasAProgram, with a folder that no other program has.
func TestEachTenantHasAProgram(t *testing.T) {
	p := newPerTenant(t, nil)
	servers, err := p.svc.Servers(t.Context(), p.of("acme", "", nil).Tenant, tools.KindMCP)
	require.NoError(t, err)
	require.Equal(t, command.StatusActive, servers[0].Status, "before the first call")
	acme, globex := p.pid("acme"), p.pid("globex")
	require.NotEqual(t, acme, globex)
	require.Equal(t, acme, p.pid("acme"), "it goes on for the next call")
	for _, tenant := range []string{"acme", "globex", "ACME"} {
		_, err := p.Call(t.Context(), p.of(tenant, "child_effect", args{"file": "note"}))
		require.NoError(t, err)
	}
	folders, err := os.ReadDir(p.folder)
	require.NoError(t, err)
	require.Len(t, folders, 4)
	for _, f := range folders {
		_, err := os.Stat(filepath.Join(p.folder, f.Name(), "note"))
		require.Equal(t, f.Name() != "~tools", err == nil, f.Name())
	}
	p.svc.Stop()
	p.gone(acme)
	p.gone(globex)
}

// TestAProgramOfATenantIsStartedAgain after it has died, and no other is.
func TestAProgramOfATenantIsStartedAgain(t *testing.T) {
	p := newPerTenant(t, nil)
	acme, globex := p.pid("acme"), p.pid("globex")
	require.NoError(t, syscall.Kill(acme, syscall.SIGKILL))
	p.gone(acme)
	require.NotEqual(t, acme, p.pid("acme"))
	require.Equal(t, globex, p.pid("globex"))
}

// TestAProgramOfATenantEndsWhenItRests, and the next call starts another.
func TestAProgramOfATenantEndsWhenItRests(t *testing.T) {
	p := newPerTenant(t, func(c *mcpservers.Config) { c.RestAfter = time.Millisecond })
	first := p.pid("acme")
	p.gone(first)
	require.NotEqual(t, first, p.pid("acme"))
}

// TestProgramsOfTenantsAreBounded: one that rests makes room for another tenant's, one that works does not.
func TestProgramsOfTenantsAreBounded(t *testing.T) {
	p := newPerTenant(t, func(c *mcpservers.Config) { c.MaxPrograms = 1 })
	acme := p.pid("acme")
	globex := p.pid("globex")
	require.NotEqual(t, acme, globex)
	p.gone(acme)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	busy := p.of("globex", "child_wait", args{"file": p.file("ran")})
	go func() {
		_, err := p.Call(ctx, busy)
		over <- err
	}()
	require.Eventually(t, func() bool { return p.ran(t, "ran") > 0 }, maxWait, tick)
	_, err := p.Call(t.Context(), p.of("acme", "child_pid", nil))
	isFault(t, err, fault.ToolsBusy)
	cancel()
	<-over
	p.pid("acme")
}

// TestOptionsForProgramsOfTenants: errors name the option.
func TestOptionsForProgramsOfTenants(t *testing.T) {
	for want, change := range map[string]func(*mcpservers.Config){
		"servers[0].per_tenant: applies to servers with a command": func(c *mcpservers.Config) { c.Command, c.URL, c.PerTenant = nil, "http://127.0.0.1:1", true },
		"servers[0].per_tenant: set dir":                           func(c *mcpservers.Config) { c.PerTenant = true },
		"servers[0].per_tenant: set it to true":                    func(c *mcpservers.Config) { c.MaxPrograms = 3 },
		"servers[0].per_tenant_max: must not":                      func(c *mcpservers.Config) { c.PerTenant, c.Dir, c.MaxPrograms = true, ".", -1 },
		"servers[0].per_tenant_rest: must not":                     func(c *mcpservers.Config) { c.PerTenant, c.Dir, c.RestAfter = true, ".", -1 },
	} {
		c := program("child", "plain")
		change(&c)
		_, err := service.New(service.Config{Servers: []mcpservers.Config{c}}, service.Deps{})
		require.ErrorContains(t, err, want)
	}
}

// TestTheDirectoryCountsProgramsOfTenants.
func TestTheDirectoryCountsProgramsOfTenants(t *testing.T) {
	conn := bustest.Single(t)
	dir, err := directory.Open(t.Context(), conn)
	require.NoError(t, err)
	t.Cleanup(dir.Close)
	c := program("child", "plain")
	c.PerTenant, c.Dir, c.RestAfter = true, publicDir(t), time.Millisecond
	p := perTenant{launch(t, unasked(service.Config{Servers: []mcpservers.Config{c}}), service.Deps{Conn: conn, Directory: dir}), t, c.Dir}
	p.await(t, "child_pid")
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	counted := func(want int) {
		require.NoError(t, dir.Wait(ctx, func(d *directory.Directory) bool {
			var card tools.Card
			m := d.Members(directory.WhatService, tools.ServiceName)
			return len(m) == 1 && json.Unmarshal(m[0].Data, &card) == nil && card.Reports["child"].Programs == want
		}))
	}
	called, end := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = p.Call(called, p.of("acme", "child_wait", nil)) // it is cancelled
	}()
	counted(1)
	end()
	<-over
	counted(0)
}
