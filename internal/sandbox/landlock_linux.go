package sandbox

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights on files by Landlock.
const (
	rightsFile  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	rightsRead  = rightsFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	rightsWrite = rightsRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	rightsDevice = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	rightsAll    = rightsWrite | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// rightsOfFiles are the rights that a rule for a file, not a folder, may have.
	rightsOfFiles = rightsFile | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// rulePort is the type of a rule for a port.
const rulePort = 2

// system lists the files that ordinary programs read: programs, libraries, certificates, names and the machine's size. Those
// that do not exist count for nothing.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
	"/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/crypto-policies",
	"/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols",
	"/etc/localtime", "/etc/timezone", "/etc/passwd", "/etc/group", "/etc/os-release", "/etc/mime.types", "/etc/alternatives",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/locale.alias",
	"/sys/devices/system/cpu", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",
}

// global lists the files of /proc that tell about the machine and no process.
var global = []string{
	"/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/uptime", "/proc/version", "/proc/filesystems",
	"/proc/sys/kernel/osrelease", "/proc/sys/kernel/cap_last_cap", "/proc/sys/vm/overcommit_memory",
}

// devices may be read and written.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// landlockVersion returns the kernel's version of Landlock.
func landlockVersion() (int, error) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	return int(v), nil
}

// ruleset is a Landlock ruleset under construction.
type ruleset struct {
	fd    int
	files uint64 // the rights that this version knows
}

// landlock restricts this thread to the order's files and ports. It needs noNewPrivileges.
func landlock(o *order) error {
	r, err := newRuleset(o.Features.Landlock)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(r.fd) }()
	if err := r.fillFiles(o); err != nil {
		return err
	}
	if o.Features.Landlock >= landlockTCP {
		for _, p := range o.Ports {
			if err := r.port(p); err != nil {
				return fmt.Errorf("port %d: %w", p, err)
			}
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), 0, 0); errno != 0 {
		return errno
	}
	return nil
}

func newRuleset(version int) (*ruleset, error) {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: rightsAll}
	if version < landlockDevices {
		attr.Handled_access_fs &^= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version < landlockFiles {
		attr.Handled_access_fs &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version < 2 {
		attr.Handled_access_fs &^= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= landlockTCP {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if version >= landlockSignals {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	// Older kernels accept a longer structure whose end is zero.
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0) //nolint:gosec // The kernel reads the structure during the call.
	if errno != 0 {
		return nil, errno
	}
	return &ruleset{fd: int(fd), files: attr.Handled_access_fs}, nil
}

func (r *ruleset) fillFiles(o *order) error {
	proc, own := global, []string(nil)
	if o.Features.OwnProc {
		proc, own = []string{"/proc"}, []string{"/dev/shm"}
	}
	for _, rule := range []struct {
		paths    []string
		rights   uint64
		optional bool // a path may be missing or out of reach
	}{
		{system, rightsRead, true},
		{own, rightsWrite, true},
		{proc, rightsRead, true},
		{devices, rightsDevice, true},
		{o.Read, rightsRead, false},
		{o.Named, rightsRead, true},
		{o.Write, rightsWrite, false},
	} {
		for _, path := range rule.paths {
			err := r.path(path, rule.rights)
			if rule.optional && (errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission)) {
				continue
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// path allows access to a file, or to a folder and all below.
func (r *ruleset) path(path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsOfFiles
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights & r.files, Parent_fd: int32(fd)} //nolint:gosec // A descriptor fits.
	if errno := r.add(unix.LANDLOCK_RULE_PATH_BENEATH, unsafe.Pointer(&rule)); errno != 0 {      //nolint:gosec // as above
		return &os.PathError{Op: "allow", Path: path, Err: errno}
	}
	return nil
}

// port allows TCP connections to a port.
func (r *ruleset) port(port int) error {
	rule := struct{ access, port uint64 }{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, uint64(port)} //nolint:gosec // Complete has checked it.
	if errno := r.add(rulePort, unsafe.Pointer(&rule)); errno != 0 {                          //nolint:gosec // as above
		return errno
	}
	return nil
}

func (r *ruleset) add(kind uintptr, rule unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), kind, uintptr(rule), 0, 0, 0)
	return errno
}
