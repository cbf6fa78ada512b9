#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first program of the guest: mounts, loads modules, runs the payload, says how it ended. Layer: test.
# Arguments: token for the last line, what else to do at the end ("reboot" when this is process 1).
TOKEN=$1
END=$2
export PATH=/bin HOME=/ LD_LIBRARY_PATH=/lib NETPLANE_OBJECTS=/netplane/bpf NETPLANE_CGROUP=/tmp/cgroup

read -r NETPLANE_PARTS </netplane/parts
export NETPLANE_PARTS

if [ "$END" = reboot ]; then
	mount -t proc proc /proc
	mount -t sysfs sysfs /sys
	# Without devtmpfs the nodes of the archive stay, which are enough.
	mount -t devtmpfs devtmpfs /dev
fi
[ -d /dev/pts ] || mkdir /dev/pts
[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
mount -t bpf bpf /sys/fs/bpf || echo "guest: no BPF file system"
mount -t tmpfs tmpfs /tmp
mkdir /tmp/cgroup
mount -t cgroup2 cgroup2 /tmp/cgroup || echo "guest: no cgroup2"
ip link set lo up

for m in /netplane/modules/*.ko; do
	name=${m##*/[0-9][0-9][0-9]-}
	[ -e "$m" ] && [ ! -d "/sys/module/${name%.ko}" ] || continue
	insmod "$m" 2>/tmp/insmod || echo "guest: $(cat /tmp/insmod)"
done

# From here on only the payload writes: a kernel message amid a line would make it unreadable.
dmesg -n 1
cd /tmp
{
	/netplane/node /netplane/payload.mjs
	echo $? >/tmp/code
} 2>&1 | cat
code=$(cat /tmp/code)
if [ "$code" != 0 ]; then
	echo "the kernel's last messages:"
	dmesg | tail -n 40
fi
echo "guest-exit $TOKEN ${code:-none}"
# The console still has to send what was written, and an end would cut it off. The host ends the machine when it sees the line.
sleep 20
# With -no-reboot the emulator ends; every kernel can do this, with or without ACPI.
[ "$END" = reboot ] && reboot -f
exit "${code:-1}"
