//go:build amd64 || arm64

package seccomp

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// call is a system call as a filter sees it.
type call struct {
	arch   uint32 // 0 = that of this machine
	number uint32
	args   [6]uint64
}

// bytes returns the kernel's data about the call. The machine of the test reads words with the high byte first.
func (c call) bytes() []byte {
	b := binary.BigEndian.AppendUint32(nil, c.number)
	arch := c.arch
	if arch == 0 {
		arch = auditArch
	}
	b = binary.BigEndian.AppendUint32(b, arch)
	b = append(b, make([]byte, 8)...) // the instruction pointer
	for _, a := range c.args {
		b = binary.BigEndian.AppendUint32(b, uint32(a))
		b = binary.BigEndian.AppendUint32(b, uint32(a>>32))
	}
	return b
}

// judge returns the filter's answer to the call.
func judge(t *testing.T, f Filter, c call) uint32 {
	t.Helper()
	raw := make([]bpf.RawInstruction, len(f))
	for i, in := range f {
		raw[i] = bpf.RawInstruction{Op: in.Code, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	program, all := bpf.Disassemble(raw)
	require.True(t, all)
	vm, err := bpf.NewVM(program)
	require.NoError(t, err)
	answer, err := vm.Run(c.bytes())
	require.NoError(t, err)
	return uint32(answer)
}

const (
	allowed = unix.SECCOMP_RET_ALLOW
	killed  = unix.SECCOMP_RET_KILL_PROCESS
	// dirty is what a program may leave in the upper half of an argument that the kernel reads as 32 bits.
	dirty = 0x5a5a5a5a << 32
)

func refused(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

// A hostile program finds no other way to a call: not by another architecture, nor by bits that the kernel does not read.
func TestFilter(t *testing.T) {
	closed, network := Rules{Namespaces: true, Closed: true}, Rules{Namespaces: true, Closed: true, Network: true}
	foreign := uint32(unix.AUDIT_ARCH_I386)
	if auditArch == unix.AUDIT_ARCH_AARCH64 {
		foreign = unix.AUDIT_ARCH_ARM
	}
	const inet, stream, datagram = unix.AF_INET, unix.SOCK_STREAM, unix.SOCK_DGRAM
	for name, tc := range map[string]struct {
		rules Rules
		call  call
		want  uint32
	}{
		"an ordinary call":                    {closed, call{number: unix.SYS_READ}, allowed},
		"a foreign architecture":              {closed, call{arch: foreign, number: unix.SYS_READ}, killed},
		"a forbidden call":                    {closed, call{number: unix.SYS_PTRACE}, refused(unix.EPERM)},
		"a session, in namespaces":            {closed, call{number: unix.SYS_SETSID}, allowed},
		"a session, without":                  {Rules{Closed: true}, call{number: unix.SYS_SETSID}, refused(unix.EPERM)},
		"modes, with closed mounts":           {closed, call{number: unix.SYS_FCHMODAT}, allowed},
		"modes, without":                      {Rules{Namespaces: true}, call{number: unix.SYS_FCHMODAT}, refused(0)},
		"a thread":                            {closed, call{number: unix.SYS_CLONE, args: [6]uint64{unix.CLONE_VM | unix.CLONE_THREAD}}, allowed},
		"a user namespace":                    {closed, call{number: unix.SYS_CLONE, args: [6]uint64{unix.CLONE_VM | unix.CLONE_NEWUSER}}, refused(unix.EPERM)},
		"clone3":                              {closed, call{number: unix.SYS_CLONE3}, refused(unix.ENOSYS)},
		"a terminal's size":                   {closed, call{number: unix.SYS_IOCTL, args: [6]uint64{0, unix.TIOCGWINSZ}}, allowed},
		"input to a terminal":                 {closed, call{number: unix.SYS_IOCTL, args: [6]uint64{0, unix.TIOCSTI}}, refused(unix.EPERM)},
		"input to a terminal, dirty":          {closed, call{number: unix.SYS_IOCTL, args: [6]uint64{0, unix.TIOCSTI | dirty}}, refused(unix.EPERM)},
		"a pair":                              {closed, call{number: unix.SYS_SOCKETPAIR, args: [6]uint64{unix.AF_UNIX, stream}}, allowed},
		"a pair of another kind":              {closed, call{number: unix.SYS_SOCKETPAIR, args: [6]uint64{unix.AF_TIPC, stream}}, refused(unix.EPERM)},
		"TCP without a network":               {closed, call{number: unix.SYS_SOCKET, args: [6]uint64{inet, stream}}, refused(unix.EACCES)},
		"TCP":                                 {network, call{number: unix.SYS_SOCKET, args: [6]uint64{inet, stream}}, allowed},
		"TCP over IPv6, closed at executions": {network, call{number: unix.SYS_SOCKET, args: [6]uint64{unix.AF_INET6, stream | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK, unix.IPPROTO_TCP}}, allowed},
		"TCP, dirty":                          {network, call{number: unix.SYS_SOCKET, args: [6]uint64{inet | dirty, stream | dirty, unix.IPPROTO_TCP | dirty}}, allowed},
		"UDP":                                 {network, call{number: unix.SYS_SOCKET, args: [6]uint64{inet, datagram, unix.IPPROTO_UDP}}, allowed},
		"multipath TCP":                       {network, call{number: unix.SYS_SOCKET, args: [6]uint64{inet, stream, unix.IPPROTO_MPTCP}}, refused(unix.EPROTONOSUPPORT)},
		"a raw socket":                        {network, call{number: unix.SYS_SOCKET, args: [6]uint64{inet, unix.SOCK_RAW, unix.IPPROTO_ICMP}}, refused(unix.EPERM)},
		"a socket in the file system":         {network, call{number: unix.SYS_SOCKET, args: [6]uint64{unix.AF_UNIX, stream}}, refused(unix.EACCES)},
		"a socket in the file system, dirty":  {network, call{number: unix.SYS_SOCKET, args: [6]uint64{unix.AF_UNIX | dirty, stream}}, refused(unix.EACCES)},
		"addresses of the machine":            {network, call{number: unix.SYS_SOCKET, args: [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}}, allowed},
		"another netlink":                     {network, call{number: unix.SYS_SOCKET, args: [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT}}, refused(unix.EPERM)},
		"a server":                            {network, call{number: unix.SYS_LISTEN}, refused(unix.EACCES)},
		"data":                                {network, call{number: unix.SYS_SENDTO}, allowed},
		"data that connects":                  {network, call{number: unix.SYS_SENDTO, args: [6]uint64{0, 0, 0, unix.MSG_FASTOPEN | dirty}}, refused(unix.EPERM)},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, judge(t, New(tc.rules), tc.call)) })
	}
}
