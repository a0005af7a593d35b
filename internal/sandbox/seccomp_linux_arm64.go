package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// forbiddenHere are forbidden calls that only this architecture has.
var forbiddenHere []uint32
