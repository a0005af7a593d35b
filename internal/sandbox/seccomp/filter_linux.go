//go:build amd64 || arm64

package seccomp

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets in the data that the kernel gives to a filter.
const (
	atNumber = 0
	atArch   = 4
	atArgs   = 16 // 8 bytes each, the lower half first
)

// Flags and numbers that the filter looks for.
const (
	newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
		unix.CLONE_NEWPID | unix.CLONE_NEWNET
	typeMask    = 0xf // of a socket; the rest are flags
	filterMode  = 1   // SECCOMP_SET_MODE_FILTER
	netlinkInfo = unix.NETLINK_ROUTE
)

// forbidden lists the system calls that no tool needs: they look into other processes, change the machine, or reach large
// parts of the kernel. The filter refuses them with EPERM.
var forbidden = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE,
	unix.SYS_KCMP, unix.SYS_PIDFD_GETFD, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_SETNS, unix.SYS_UNSHARE, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SYSLOG,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME,
	unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP, unix.SYS_PERSONALITY, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL,
	unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SEMGET, unix.SYS_MSGGET, // shared by all programs of a user, without namespaces
}

// leaving lists the system calls by which a process leaves its process group.
var leaving = []uint32{unix.SYS_SETSID, unix.SYS_SETPGID}

// attributes lists the system calls that change a file by its path without opening it: Landlock does not judge them. Where
// mounts do not protect the files, these calls do nothing and report success, because many programs copy modes and end when
// they cannot. Calls on open files work: Landlock has judged the opening.
var attributes = []uint32{
	unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWNAT,
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
}

// Filter is a program for the kernel.
type Filter []unix.SockFilter

func (f *Filter) statement(code uint16, k uint32) {
	*f = append(*f, unix.SockFilter{Code: code, K: k})
}

// jump compares and then skips some instructions.
func (f *Filter) jump(code uint16, k uint32, ifTrue, ifFalse uint8) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_JMP | code | unix.BPF_K, Jt: ifTrue, Jf: ifFalse, K: k})
}

func (f *Filter) load(offset uint32) { f.statement(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset) }

func (f *Filter) arg(n uint32) { f.load(atArgs + 8*n) }

func (f *Filter) allow() { f.statement(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_ALLOW) }

func (f *Filter) refuse(e unix.Errno) {
	f.statement(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_ERRNO|uint32(e)) //nolint:gosec // Error numbers are small.
}

// on adds the judgement of one system call, which has to decide.
func (f *Filter) on(number uint32, judge func(*Filter)) {
	var body Filter
	judge(&body)
	f.jump(unix.BPF_JEQ, number, 0, uint8(len(body))) //nolint:gosec // A judgement has a few instructions.
	*f = append(*f, body...)
}

// never refuses a system call.
func (f *Filter) never(number uint32, e unix.Errno) {
	f.on(number, func(f *Filter) { f.refuse(e) })
}

// unlessSet refuses a system call with one of the flags in its argument.
func (f *Filter) unlessSet(number, arg, flags uint32) {
	f.on(number, func(f *Filter) {
		f.arg(arg)
		f.jump(unix.BPF_JSET, flags, 0, 1)
		f.refuse(unix.EPERM)
		f.allow()
	})
}

// unlessEqual refuses a system call whose argument has one of the values.
func (f *Filter) unlessEqual(number, arg uint32, values ...uint32) {
	f.on(number, func(f *Filter) {
		f.arg(arg)
		for _, v := range values {
			f.jump(unix.BPF_JEQ, v, 0, 1)
			f.refuse(unix.EPERM)
		}
		f.allow()
	})
}

// New returns the filter for the rules.
func New(r Rules) Filter {
	var f Filter
	f.load(atArch)
	f.jump(unix.BPF_JEQ, auditArch, 1, 0)
	f.statement(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_KILL_PROCESS)
	f.load(atNumber)
	if runtime.GOARCH == "amd64" { // the numbers of the x32 interface
		f.jump(unix.BPF_JGE, 0x40000000, 0, 1)
		f.refuse(unix.ENOSYS)
	}
	for _, n := range append(forbiddenHere, forbidden...) {
		f.never(n, unix.EPERM)
	}
	if !r.Namespaces {
		for _, n := range leaving {
			f.never(n, unix.EPERM)
		}
	}
	if !r.Closed {
		for _, n := range append(attributesHere, attributes...) {
			f.never(n, 0)
		}
	}
	f.unlessSet(unix.SYS_CLONE, 0, newNamespaces)
	f.never(unix.SYS_CLONE3, unix.ENOSYS) // A filter cannot see its flags; libraries then use clone.
	f.unlessEqual(unix.SYS_IOCTL, 1, unix.TIOCSTI, unix.TIOCLINUX)
	f.sockets(r.Network)
	f.allow()
	return f
}

// sockets judges the calls for sockets. Landlock judges TCP ports; sockets in the file system, and protocols other than TCP, are
// outside of its rules, so that the filter refuses them.
func (f *Filter) sockets(network bool) {
	f.never(unix.SYS_LISTEN, unix.EACCES)
	f.on(unix.SYS_SOCKETPAIR, func(f *Filter) {
		f.arg(0)
		f.jump(unix.BPF_JEQ, unix.AF_UNIX, 0, 1)
		f.allow()
		f.refuse(unix.EPERM)
	})
	if !network {
		f.never(unix.SYS_SOCKET, unix.EACCES)
		return
	}
	f.on(unix.SYS_SOCKET, (*Filter).socket)
	// TCP Fast Open connects without the call that Landlock judges.
	f.unlessSet(unix.SYS_SENDTO, 3, unix.MSG_FASTOPEN)
	f.unlessSet(unix.SYS_SENDMSG, 2, unix.MSG_FASTOPEN)
	f.unlessSet(unix.SYS_SENDMMSG, 3, unix.MSG_FASTOPEN)
}

// socket allows TCP and UDP, and the netlink socket with which libraries look at addresses.
func (f *Filter) socket() {
	var inet Filter
	inet.arg(1)
	inet.statement(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, typeMask)
	for _, t := range []struct{ kind, protocol uint32 }{{unix.SOCK_STREAM, unix.IPPROTO_TCP}, {unix.SOCK_DGRAM, unix.IPPROTO_UDP}} {
		inet.jump(unix.BPF_JEQ, t.kind, 0, 5)
		inet.arg(2)
		inet.jump(unix.BPF_JEQ, 0, 1, 0)
		inet.jump(unix.BPF_JEQ, t.protocol, 0, 1)
		inet.allow()
		inet.refuse(unix.EPROTONOSUPPORT)
	}
	inet.refuse(unix.EPERM)

	f.arg(0)
	f.jump(unix.BPF_JEQ, unix.AF_NETLINK, 0, 4)
	f.arg(2)
	f.jump(unix.BPF_JEQ, netlinkInfo, 0, 1)
	f.allow()
	f.refuse(unix.EPERM)
	f.jump(unix.BPF_JEQ, unix.AF_INET, 2, 0)
	f.jump(unix.BPF_JEQ, unix.AF_INET6, 1, 0)
	f.refuse(unix.EACCES)
	*f = append(*f, inet...)
}

// Check returns the reason why the kernel or this architecture has no filters, or nil.
func Check() error { return unix.Prctl(unix.PR_GET_SECCOMP, 0, 0, 0, 0) }

// Set sets the filter for this thread, which must have given up new privileges.
func (f Filter) Set() error {
	prog := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}                                      //nolint:gosec // The filter has some hundred instructions.
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, filterMode, 0, uintptr(unsafe.Pointer(&prog))) //nolint:gosec // The kernel reads the filter during the call.
	if errno != 0 {
		return errno
	}
	return nil
}
