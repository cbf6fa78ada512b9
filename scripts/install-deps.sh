#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that the named groups need and that are missing; without root it names them and stops.
set -euo pipefail

packages() {
  case $1 in
    build) echo clang-19 llvm-19 libbpf-dev libelf-dev zlib1g-dev linux-libc-dev g++ make python3 ca-certificates ;;
    lint) echo clang-format-19 clang-tidy-19 protobuf-compiler ;;
    shells) echo zsh fish ;;
    fuzz) echo libclang-rt-19-dev ;;
    demo) echo iproute2 util-linux procps tcpdump iputils-ping nftables iptables bpftool curl perl-base containernetworking-plugins ;;
    vm) echo qemu-system-x86 qemu-system-arm qemu-user-static g++-aarch64-linux-gnu python3-pip kmod xz-utils file ;;
    bench) echo ethtool iperf3 ;;
    go) echo golang-go ;;
    image) echo mmdebstrap ;;
    e2e) echo containerd runc containernetworking-plugins openssl busybox-static netcat-openbsd bind9-dnsutils iperf conntrack wget nftables iptables ;;
    *) echo "install-deps: no group $1" >&2; exit 2 ;;
  esac
}

wanted=()
for group in "$@"; do
  for package in $(packages "$group"); do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' || wanted+=("$package")
  done
done
# npm only brings in the Node of the lock file: any will do
[[ " $* " == *" build "* ]] && ! command -v npm >/dev/null && wanted+=(nodejs npm)
[ ${#wanted[@]} -eq 0 ] && exit 0

if [ "$(id -u)" != 0 ]; then
  echo "missing Debian packages: ${wanted[*]}" >&2
  echo "install them, or run make as root" >&2
  exit 1
fi
echo "installing Debian packages: ${wanted[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
{ apt-get update -q && apt-get install -q -y --no-install-recommends "${wanted[@]}"; } >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
