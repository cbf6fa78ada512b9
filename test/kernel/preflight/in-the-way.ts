// SPDX-License-Identifier: Apache-2.0
/** Makes of a virtual machine a node that Netplane cannot be on, as far as its kernel has what it takes, and says what
 * an administrator is to be told of it. Layer: test. */
import { execFileSync } from 'node:child_process'
import { release } from 'node:os'
import { isRealtime } from '#agent/node/facts.ts'
import { isOldKernel } from '#lib/base/os/oldest-kernel.ts'
import { addIpvsService } from './ipvs.ts'
import { isGiven } from './given-modules.ts'

const UPLINK = 'pfup0'
const VLAN = 'pfup0.7'

/** The node's address is on a tagged VLAN, and kube-proxy serves by IPVS. */
export function putInTheWay(address: string): void {
  const ip = (...words: readonly string[]): unknown => execFileSync('ip', words)
  ip('link', 'add', UPLINK, 'type', 'dummy')
  ip('link', 'set', UPLINK, 'up')
  const hasVlans = isGiven('8021q')
  if (hasVlans) ip('link', 'add', 'link', UPLINK, 'name', VLAN, 'type', 'vlan', 'id', '7')
  const device = hasVlans ? VLAN : UPLINK
  ip('addr', 'add', `${address}/24`, 'dev', device)
  ip('link', 'set', device, 'up')
  ip('route', 'add', 'default', 'dev', device)
  if (!isGiven('ip_vs')) return
  addIpvsService([10, 96, 0, 1])
  ip('link', 'add', 'kube-ipvs0', 'type', 'dummy')
  ip('addr', 'add', '10.96.0.1/32', 'dev', 'kube-ipvs0')
}

/** Node, finding, reason and remedy, in the words of the status. At least one. */
export function expectedSentences(address: string): readonly RegExp[] {
  const said = [
    ...(isOldKernel(release())
      ? [
          /node-a: kernel 4\.\S+ is older than Linux 5\.3, or 4\.18\.0-193 of Enterprise Linux 8, and refuses the programs: bpf_object__load: [^(]+\(libbpf: prog '.*; upgrade the kernel: Linux 5\.3, or 4\.18\.0-193 of Enterprise Linux 8 is the oldest/,
        ]
      : []),
    ...(isRealtime()
      ? [
          /node-a: programs are not safe on this kernel: \S+ is a real-time kernel without \S+: [^;]+; use a kernel that is not real-time, or has that option/,
        ]
      : []),
    ...(isGiven('8021q')
      ? [
          new RegExp(
            `node-a: pfup0\\.7 is a tagged VLAN, on which programs do not work, and the node needs it \\(has the node's address ${address.replaceAll('.', '\\.')}\\); give the node its address on a device of Ethernet without a VLAN tag`,
          ),
        ]
      : []),
    ...(isGiven('ip_vs')
      ? [
          /node-a: kube-ipvs0 has 1 addresses of services: kube-proxy's IPVS mode runs here or has left them; switch kube-proxy to iptables mode, then restart the node/,
          /node-a: the kernel serves 1 services by IPVS; switch kube-proxy to iptables mode, then restart the node; stop any other program that uses IPVS/,
        ]
      : []),
  ]
  if (said.length === 0) throw new Error('nothing is in the way on this kernel')
  return said
}
