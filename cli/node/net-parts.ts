// SPDX-License-Identifier: Apache-2.0
/** Parts of a bundle about the node's network: interfaces, routes, neighbours, and other programs' firewalls.
 * Layer: cli. */
import { readFileSync } from 'node:fs'
import { INTERFACE_PREFIX } from '#lib/model/pod.ts'
import { toolRunner } from '#lib/base/os/run-tool.ts'
import { findFirewalls } from '#agent/node/firewall/detect.ts'
import { ownDevices } from '#agent/node/firewall/pod-devices.ts'
import { legacyTables } from '#agent/node/firewall/legacy.ts'
import type { Part } from '../bundle/collect.ts'
import { jsonText } from './maps.ts'
import { toolText } from './tools.ts'

export function netParts(): Part[] {
  const tool = (name: string, about: string, ...command: readonly string[]): Part => ({
    name,
    about: `${about} (${command.join(' ')})`,
    read: () => toolText(...command),
  })
  return [
    tool('net/links.txt', 'interfaces', 'ip', '-d', '-s', 'link', 'show'),
    tool('net/addresses.txt', 'addresses', 'ip', 'address', 'show'),
    tool('net/routes-v4.txt', 'routes', 'ip', '-4', 'route', 'show', 'table', 'all'),
    tool('net/routes-v6.txt', 'routes', 'ip', '-6', 'route', 'show', 'table', 'all'),
    tool('net/rules-v4.txt', 'rules of routing', 'ip', '-4', 'rule', 'show'),
    tool('net/rules-v6.txt', 'rules of routing', 'ip', '-6', 'rule', 'show'),
    tool('net/neighbours.txt', 'neighbours', 'ip', 'neighbour', 'show'),
    tool('net/qdiscs.txt', 'queueing, and where clsact is', 'tc', '-s', 'qdisc', 'show'),
    tool('net/listening.txt', 'ports that are listened at', 'ss', '-H', '-l', '-n', '-t', '-u'),
    { name: 'net/counters.txt', about: "the kernel's counters (/proc/net/netstat, snmp)", read: counters },
    { name: 'firewall/findings.json', about: 'what other programs drop that is left to the kernel', read: findings },
    tool('firewall/iptables-v4.txt', 'rules of iptables', 'iptables-nft-save', '-t', 'filter'),
    tool('firewall/iptables-v6.txt', 'rules of iptables', 'ip6tables-nft-save', '-t', 'filter'),
    tool('firewall/nft-chains.txt', 'chains of nftables', 'nft', 'list', 'chains'),
    tool('firewall/nft.txt', 'rules of nftables, without the content of sets', 'nft', '-t', 'list', 'ruleset'),
  ]
}

function counters(): string {
  return ['netstat', 'snmp', 'snmp6'].map((name) => `# ${name}\n${readFileSync(`/proc/net/${name}`, 'utf8')}`).join('')
}

/** As the agent sees it on a kernel that redirects packets past netfilter, and on one that does not. */
async function findings(): Promise<string> {
  const run = toolRunner({ timeoutMs: 5000 })
  const pods = [ownDevices(INTERFACE_PREFIX)]
  const report = await findFirewalls({ run, legacyTables, pods, forwards: false })
  const before510 = await findFirewalls({ run, legacyTables, pods, forwards: true })
  return jsonText({ ...report, whereTheKernelForwards: before510.findings })
}
