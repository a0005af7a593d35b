#!/bin/sh
# Installs Waggle: downloads the program for this machine, verifies its signature and its checksum, and runs nothing of it.
#
#   curl -fsSL https://github.com/waggle-dev/waggle/releases/latest/download/install.sh | sh
#
# WAGGLE_VERSION       another version, such as 0.1.0 (default: the one that this file came with)
# WAGGLE_INSTALL_DIR   where to (default: /usr/local/bin for root, ~/.local/bin for others)
# WAGGLE_DOWNLOAD_URL  a mirror of the release's files
set -eu

# The key that signs releases, in the forms that ssh-keygen, openssl and minisign read.
ssh_key='@SSH_KEY@'
pem_key='@PEM_KEY@'
minisign_key='@MINISIGN_KEY@'

fail() {
	echo "install.sh: $*" >&2
	exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

platform() {
	case "$(uname -s)" in
	Linux) system=linux ;;
	Darwin) system=darwin ;;
	*) fail "no program for $(uname -s): on Windows, use WSL 2" ;;
	esac
	case "$(uname -m)" in
	x86_64 | amd64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) fail "no program for $(uname -m)" ;;
	esac
}

download() { # download FILE
	case "$url" in https://*) only='=https' ;; *) only='=http,https,file' ;; esac
	if has curl; then
		curl -fsSL --proto "$only" --retry 3 -o "$1" "$url/$1"
	elif has wget; then
		wget -q -O "$1" "$url/$1"
	else
		fail 'install curl or wget first'
	fi || fail "cannot download $url/$1"
}

# Each of these succeeds only with a valid signature, so that the first one that this machine has decides.
by_minisign() { has minisign && minisign -Vqm "$1" -P "$minisign_key" >/dev/null 2>&1; }
by_ssh() {
	has ssh-keygen || return 1
	echo "waggle ssh-ed25519 $ssh_key" >signers
	ssh-keygen -Y verify -f signers -I waggle -n file -s "$1.sig" <"$1" >/dev/null 2>&1
}
by_openssl() {
	has openssl || return 1
	printf -- '-----BEGIN PUBLIC KEY-----\n%s\n-----END PUBLIC KEY-----\n' "$pem_key" >key.pem
	sed -n 2p "$1.minisig" | openssl base64 -d -A | tail -c 64 >signature
	openssl pkeyutl -verify -pubin -inkey key.pem -rawin -in "$1" -sigfile signature >/dev/null 2>&1
}

verify() {
	by_ssh checksums.txt || by_openssl checksums.txt || by_minisign checksums.txt ||
		fail 'the signature of checksums.txt is wrong, or this machine cannot verify it (that needs ssh-keygen 8.1, openssl 3 or minisign)'
	grep "  $archive\$" checksums.txt >checksum || fail "checksums.txt does not list $archive"
	if has sha256sum; then
		sha256sum -c checksum >/dev/null 2>&1
	elif has shasum; then
		shasum -a 256 -c checksum >/dev/null 2>&1
	else
		openssl dgst -sha256 -r "$archive" | grep -q "^$(cut -d' ' -f1 checksum) "
	fi || fail "$archive is damaged: its checksum is wrong"
}

main() {
	version=${WAGGLE_VERSION:-@VERSION@}
	version=${version#v}
	url=${WAGGLE_DOWNLOAD_URL:-https://github.com/waggle-dev/waggle/releases/download/v$version}
	if [ "$(id -u)" = 0 ]; then to=/usr/local/bin; else to=$HOME/.local/bin; fi
	to=${WAGGLE_INSTALL_DIR:-$to}
	platform
	archive=waggle_${version}_${system}_$arch.tar.gz

	mkdir -p "$to" || fail "cannot write to $to: set WAGGLE_INSTALL_DIR"
	to=$(cd "$to" && pwd)
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	cd "$work"
	for file in checksums.txt checksums.txt.sig checksums.txt.minisig "$archive"; do download "$file"; done
	verify
	tar -xzf "$archive" waggle
	# A running program cannot be written to, but it can be replaced.
	cp waggle "$to/.waggle.new" && chmod 755 "$to/.waggle.new" && mv "$to/.waggle.new" "$to/waggle" || fail "cannot write to $to: set WAGGLE_INSTALL_DIR"
	echo "waggle $version is in $to"
	case ":$PATH:" in *":$to:"*) ;; *) echo "add $to to your PATH" ;; esac
	echo 'next: waggle demo'
}

main
