package seccomp

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// attributesHere are calls that change files by their paths and that only this architecture has.
var attributesHere []uint32

// forbiddenHere are forbidden calls that only this architecture has.
var forbiddenHere []uint32
