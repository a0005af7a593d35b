package main

import (
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	attacks["connect_tcp"] = func(t target) error { return connect("tcp", t.TCP) }
	attacks["send_udp"] = sendUDP
	attacks["connect_unix"] = func(t target) error { return connect("unix", t.Unix) }
	attacks["connect_abstract"] = func(t target) error { return connect("unix", t.Abstract) }
	attacks["send_unix_datagram"] = func(t target) error { return connect("unixgram", t.Unix+".dgram") }
	attacks["listen"] = listen
	attacks["listen_without_bind"] = listenUnbound
	attacks["raw_socket"] = func(target) error { return socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) }
	attacks["packet_socket"] = func(target) error { return socket(unix.AF_PACKET, unix.SOCK_RAW, 0) }
	attacks["audit_socket"] = func(target) error { return socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT) }
	attacks["crypto_socket"] = func(target) error { return socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) }
	attacks["vsock_socket"] = func(target) error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) }
	attacks["fast_open"] = fastOpen
	attacks["multipath_tcp"] = multipath
}

func connect(network, addr string) error {
	c, err := net.DialTimeout(network, addr, 5*time.Second)
	if err == nil {
		_ = c.Close()
	}
	return err
}

func sendUDP(t target) error {
	c, err := net.Dial("udp", t.UDP)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write([]byte("x"))
	return err
}

func listen(target) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		_ = l.Close()
	}
	return err
}

// listenUnbound lets the kernel choose the port without a call to bind.
func listenUnbound(target) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Listen(fd, 1)
}

func socket(family, kind, protocol int) error {
	fd, err := unix.Socket(family, kind, protocol)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

func sockaddr(addr string) (*unix.SockaddrInet4, error) {
	a, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		return nil, err
	}
	out := &unix.SockaddrInet4{Port: a.Port}
	copy(out.Addr[:], a.IP.To4())
	return out, nil
}

// fastOpen connects by sending.
func fastOpen(t target) error {
	to, err := sockaddr(t.TCP)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, to)
}

func multipath(t target) error {
	to, err := sockaddr(t.TCP)
	if err != nil {
		return err
	}
	const multipathTCP = 262
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, multipathTCP)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	return unix.Connect(fd, to)
}
