// SPDX-License-Identifier: Apache-2.0
/** ARP and neighbour solicitation for the pods' gateway. Layer: test. */
import { addrBytes, parseAddr } from '#lib/base/ip.ts'
import { arp, concat, icmp, macBytes } from '../../../../testkit/packets/packet.ts'
import type { PacketCase } from '../../../../testkit/packets/case.ts'
import { devices } from '../../../../testkit/packets/cluster.ts'

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
        { say: 'another address', through: 'from_workload', packet: request('10.10.1.9'), action: 'pass', out: 'same' },
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
        { say: 'another address', through: 'from_workload', packet: solicit('fe80::2'), action: 'pass', out: 'same' },
      ],
    },
  ]
}

/** The node hears of neighbours from what pods say of themselves. */
function senders(): PacketCase[] {
  const spoofed = { action: 'drop', reason: 'DROP_SPOOFED' } as const
  const passes = { action: 'pass', out: 'same' } as const
  const podMac = '02:00:00:00:aa:01'
  const none = '00:00:00:00:00:00'
  const macs = { src: podMac, dst: 'ff:ff:ff:ff:ff:ff' }
  const [pod, node, gateway, stranger, elsewhere] = ['10.10.1.5', '192.168.50.1', '169.254.1.1', '10.10.1.77', '10.10.1.9']
  const says = (say: string, operation: 1 | 2, [sender, target]: readonly [string, string]) => ({
    say,
    through: 'from_workload' as const,
    packet: arp({ operation, senderMac: podMac, sender, targetMac: none, target, macs }),
  })
  const asks = (say: string, from: string, { to = 'fd00:50::1', type = 135 } = {}) => ({
    say,
    through: 'from_workload' as const,
    packet: icmp(from, 'ff02::1:ff00:1', {
      type,
      ttl: 255,
      body: concat([addrBytes(parseAddr(to)), Uint8Array.from([1, 1]), macBytes(podMac)]),
    }),
  })
  return [
    {
      name: 'IPv4: ARP of a pod has an address of its own as its sender, or none',
      given: {},
      steps: [
        { ...says('its own', 1, [pod, node]), ...passes },
        { ...says('its own, to all', 1, [pod, pod]), ...passes },
        { ...says('its own, as an answer to all', 2, [pod, pod]), ...passes },
        { ...says('answers', 2, [pod, node]), ...passes },
        { ...says('whether it is taken', 1, ['0.0.0.0', pod]), ...passes },
        { ...says('whether it is taken, of the gateway', 1, ['0.0.0.0', gateway]), action: 'redirect' },
        ...[stranger, elsewhere, node, gateway].flatMap((sender) => [
          { ...says(`asks as ${sender}`, 1, [sender, node]), ...spoofed },
          { ...says(`asks for the gateway as ${sender}`, 1, [sender, gateway]), ...spoofed },
          { ...says(`answers as ${sender}`, 2, [sender, node]), ...spoofed },
          { ...says(`tells all as ${sender}`, 1, [sender, sender]), ...spoofed },
        ]),
        { ...says('answers from the unspecified address', 2, ['0.0.0.0', node]), ...spoofed },
        ...['127.0.0.1', '0.0.0.1', '169.254.9.9', '224.0.0.1', '255.255.255.255', '10.96.0.10', '10.10.2.5'].map((sender) => ({
          ...says(`asks as ${sender}`, 1, [sender, node]),
          ...spoofed,
        })),
        // which the kernel takes on Ethernet as well: of IEEE 802 networks
        ...([pod, stranger] as const).map((sender) => {
          const step = says(`of another kind of network, asks as ${sender}`, 1, [sender, node])
          return { ...step, packet: step.packet.with(15, 6), ...(sender === pod ? passes : spoofed) }
        }),
      ],
    },
    {
      name: 'IPv6: a link of a pod has one link-local address at a time',
      given: {},
      steps: [
        { ...asks('the first', 'fe80::5'), ...passes },
        { ...asks('its own', 'fd00:10:1::5'), ...passes },
        { ...asks('another', 'fe80::6'), ...spoofed },
        { ...asks('another, of the gateway', 'fe80::6', { to: 'fe80::1' }), ...spoofed },
        { ...asks('another, for routers', 'fe80::6', { type: 133 }), ...spoofed },
        ...['fec0::5', 'febf::5', '::1', 'ff02::5', 'fd00:10:1::77', 'fd00:96::10'].map((from) => ({ ...asks(from, from), ...spoofed })),
        { ...asks('another, as an answer', 'fe80::6', { to: 'fe80::6', type: 136 }), ...spoofed },
        { ...asks('the first still', 'fe80::5'), ...passes },
        { ...asks("the gateway's", 'fe80::1'), age: 1100, ...spoofed },
        { ...asks("the gateway's, as an answer", 'fe80::1', { to: 'fe80::1', type: 136 }), ...spoofed },
        { ...asks('another after a while', 'fe80::6'), age: 1100, ...passes },
        { ...asks('the first no more', 'fe80::5'), ...spoofed },
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = [...neighbours(), ...senders()]
