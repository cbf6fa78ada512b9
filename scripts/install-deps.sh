#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that the named groups need and that are missing; `all` names every group. Without root it
# names the packages and stops.
set -euo pipefail

declare -A packages=(
  [build]='clang-19 llvm-19 libbpf-dev libelf-dev zlib1g-dev linux-libc-dev g++ make python3 ca-certificates'
  [lint]='clang-format-19 clang-tidy-19 protobuf-compiler'
  [shells]='zsh fish'
  [fuzz]='libclang-rt-19-dev'
  [demo]='iproute2 util-linux procps tcpdump iputils-ping nftables iptables bpftool curl perl-base containernetworking-plugins'
  [vm]='qemu-system-x86 qemu-system-arm qemu-user-static g++-aarch64-linux-gnu python3-pip kmod xz-utils file'
  [bench]='ethtool iperf3'
  [go]='golang-go'
  [image]='mmdebstrap'
  [e2e]='containerd runc containernetworking-plugins openssl busybox-static netcat-openbsd bind9-dnsutils iperf conntrack wget nftables iptables'
)
groups=("$@")
[[ " $* " == *" all "* ]] && groups=("${!packages[@]}")

wanted=()
for group in "${groups[@]}"; do
  [ -n "${packages[$group]:-}" ] || { echo "install-deps: no group $group" >&2; exit 2; }
  for package in ${packages[$group]}; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' || wanted+=("$package")
  done
done
# scripts/npm-ci brings in the Node of the lock file: any npm will do
[[ " ${groups[*]} " == *" build "* ]] && ! command -v npm >/dev/null && wanted+=(nodejs npm)
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
# Another apt may hold the lock, a mirror may be silent for a while, and an apt that was killed leaves packages half installed.
apt=(apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=5)
for try in 1 2 3; do
  { "${apt[@]}" update && dpkg --configure -a && "${apt[@]}" install -y --no-install-recommends "${wanted[@]}"; } >"$log" 2>&1 && exit 0
  [ $try = 3 ] || { echo "try $try failed: $(tail -n 1 "$log")"; sleep $((try * 10)); }
done
cat "$log" >&2
exit 1
