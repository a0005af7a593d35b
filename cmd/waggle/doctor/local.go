package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/id"
	files "github.com/waggle-dev/waggle/services/tools/workspace"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/provider"
)

func configuration(_ context.Context, p Patient) []Finding {
	const what = "configuration"
	use := config.For{Roles: config.Roles}
	if err := p.Config.Validate(use); err != nil {
		return one(Fail, what, err.Error(), "correct the settings named above; docs/CONFIGURATION.md explains each")
	}
	if p.Config.File == "" {
		return one(OK, what, "defaults, environment and flags; no file", "")
	}
	if readable(p.Config.File) && p.Config.FileHoldsSecrets() {
		return one(Warn, what, p.Config.File+" holds secrets and every user of this machine may read it",
			"chmod 600 "+p.Config.File)
	}
	return one(OK, what, p.Config.File, "")
}

// mounted are the folders in which containers of a fleet see secrets, readable for the container's one user; the folder on the
// host decides who else may read them.
var mounted = []string{"/run/secrets/", "/run/clients/"}

func readable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && exposed(file, info.Mode())
}

func exposed(file string, mode os.FileMode) bool {
	inside := func(folder string) bool { return strings.HasPrefix(file, folder) }
	return mode.Perm()&0o004 != 0 && !slices.ContainsFunc(mounted, inside)
}

// own are variables of the command line tools, which are not settings.
var own = map[string]bool{"WAGGLE_CONFIG": true, "WAGGLE_URL": true, "WAGGLE_TOKEN": true}

// environment finds variables that look like settings and are not: Waggle would silently ignore a misspelt one.
func environment(_ context.Context, p Patient) []Finding {
	known := map[string]bool{}
	for _, f := range config.Fields(&p.Config.Config) {
		known[f.Env] = true
	}
	var strange []string
	for _, e := range p.Environ {
		name, _, _ := strings.Cut(e, "=")
		if strings.HasPrefix(name, "WAGGLE_") && !known[name] && !own[name] {
			strange = append(strange, name)
		}
	}
	if len(strange) > 0 {
		return one(Warn, "environment", strings.Join(strange, ", ")+" set, but no such setting",
			"unset it, or see docs/CONFIGURATION.md for the right name")
	}
	return nil
}

func workspace(ctx context.Context, p Patient) []Finding {
	const what = "workspace"
	dir := p.Config.Workspace
	if !p.Config.Tools.Builtin {
		return nil
	}
	f, err := os.CreateTemp(dir, ".waggle-doctor-*")
	switch {
	case os.IsNotExist(err):
		return one(Warn, what, dir+" does not exist", "\"waggle up\" makes it; or choose another with --workspace")
	case err != nil:
		return one(Fail, what, err.Error(), "make it writable for this user, or choose another with --workspace")
	}
	_ = f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return one(Fail, what, err.Error(), "make it writable for this user")
	}
	used, err := files.Used(ctx, dir)
	if err != nil {
		return one(OK, what, dir+" is writable", "")
	}
	is := fmt.Sprintf("%s is writable, with %d MiB of files", dir, used>>20)
	tenant, _ := p.Config.Quota.Policy().Of(id.DefaultTenant, "")
	if limit := tenant.WorkspaceBytes; limit > 0 && float64(used) >= full*float64(limit) {
		return one(Warn, what, fmt.Sprintf("%s, of %d MiB", is, limit>>20), "delete files, or raise quota.tenant.workspace_bytes")
	}
	return one(OK, what, is, "")
}

// model checks the model that a worker with this environment would use.
func model(ctx context.Context, p Patient) []Finding {
	const what = "model"
	from := provider.Of(p.Config.Config)
	if from == nil {
		if name := p.Config.Providers.Keyed(); name != "" {
			return one(Warn, what, "demo, although the key of "+name+" is set", "choose a model with --model "+name+":NAME")
		}
		return one(OK, what, "demo: offline, no language model; needs no key", "")
	}
	err := from.Check(ctx)
	if t, ok := errors.AsType[*provider.Trouble](err); ok {
		level := Fail
		if t.Maybe {
			level = Warn
		}
		return one(level, what, t.Is, t.Do)
	}
	return one(OK, what, fmt.Sprintf("%s answers at %s", from.Name, from.URL), "")
}

func gateway(ctx context.Context, p Patient) []Finding {
	const what = "gateway"
	addr := p.Config.Addr
	if err := p.Probe(ctx, addr, "/livez"); err != nil {
		return one(Fail, what, fmt.Sprintf("no gateway answers at %s: %v", addr, err), "start it with \"waggle up\" or \"waggle serve --role gateway\"; or correct --addr")
	}
	if err := p.Probe(ctx, addr, "/readyz"); err != nil {
		return one(Fail, what, fmt.Sprintf("%s is not ready: %v", addr, err), "see the findings above, and its log")
	}
	return one(OK, what, addr+" is ready", "")
}
