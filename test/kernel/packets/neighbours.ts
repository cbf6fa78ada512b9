// SPDX-License-Identifier: Apache-2.0
/** ARP and neighbour solicitation for the pods' gateway. Layer: test. */
import { addrBytes, parseAddr } from '#lib/base/ip.ts'
import { arp, concat, icmp, macBytes } from '../../support/packet.ts'
import type { PacketCase } from './case.ts'
import { devices } from './world.ts'

function neighbours(): PacketCase[] {
  const mac = devices.pod.mac
  const podMac = '02:00:00:00:aa:01'
  const lo = '00:00:00:00:00:00'
  const request = (target: string) =>
    arp({ operation: 1, senderMac: podMac, sender: '10.10.1.5', targetMac: lo, target, macs: { src: podMac, dst: 'ff:ff:ff:ff:ff:ff' } })
  const solicit = (target: string) =>
    icmp('fd00:10:1::5', `ff02::1:ff00:${target.slice(-1)}`, {
      type: 135,
      ttl: 255,
      body: concat([addrBytes(parseAddr(target)), Uint8Array.from([1, 1]), macBytes(podMac)]),
      macs: { src: podMac, dst: '33:33:ff:00:00:01' },
    })
  return [
    {
      name: "IPv4: ARP for the pods' gateway is answered, other ARP is the kernel's",
      given: {},
      steps: [
        {
          say: 'gateway',
          through: 'from_workload',
          packet: request('169.254.1.1'),
          action: 'redirect',
          macs: true,
          out: arp({
            operation: 2,
            senderMac: mac,
            sender: '169.254.1.1',
            targetMac: podMac,
            target: '10.10.1.5',
            macs: { src: mac, dst: podMac },
          }),
        },
        { say: 'anyone else', through: 'from_workload', packet: request('10.10.1.9'), action: 'pass', out: 'same' },
        { say: 'on the wire', through: 'from_host', packet: request('169.254.1.1'), action: 'pass', out: 'same' },
      ],
    },
    {
      name: "IPv6: neighbour solicitation for the pods' gateway is answered, others are the kernel's",
      given: {},
      steps: [
        {
          say: 'gateway',
          through: 'from_workload',
          packet: solicit('fe80::1'),
          action: 'redirect',
          macs: true,
          out: icmp('fe80::1', 'fd00:10:1::5', {
            type: 136,
            word: 0x6000_0000,
            ttl: 255,
            body: concat([addrBytes(parseAddr('fe80::1')), Uint8Array.from([2, 1]), macBytes(mac)]),
            macs: { src: mac, dst: podMac },
          }),
        },
        { say: 'anyone else', through: 'from_workload', packet: solicit('fe80::2'), action: 'pass', out: 'same' },
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = neighbours()
