// SPDX-License-Identifier: Apache-2.0
/** Rules of a node as an older version's agent wrote them, in the form of `iptables-restore`. Layer: test. */

export interface OldRulesOf {
  /** pods' devices that it knew */
  readonly ifaces: readonly string[]
  /** which may not ask this TCP port of their node: by their policy then */
  readonly deniedPort: number
  /** addresses of pods */
  readonly pods: string
  /** device of its tunnel: what the node sends there has the device's address */
  readonly tunnel?: string
}

const MARKED = '-m mark --mark 0x10000/0x10000'
/** A hash of the rule, which names its owner. */
const own = (hash: string): string => `-m comment --comment "npl:${hash}"`

/** Chains of all tables. A device that is in none of them may send and get nothing. Sets are left out: a kernel without
 * them takes the rest. */
export function oldRules({ ifaces, deniedPort, pods, tunnel }: OldRulesOf): string {
  const to = (direction: 'fw' | 'tw', iface: string): string => `npl-${direction}-${iface.slice(3)}`
  const device = (direction: 'fw' | 'tw'): string => (direction === 'fw' ? '-i' : '-o')
  const dispatch = (direction: 'fw' | 'tw'): string => `npl-${direction === 'fw' ? 'from' : 'to'}-wl-dispatch`
  const policies = (['fw', 'tw'] as const).flatMap((direction) => [
    ...ifaces.map((iface) => `-A ${dispatch(direction)} ${device(direction)} ${iface} -g ${to(direction, iface)}`),
    `-A ${dispatch(direction)} -m comment --comment "Unknown interface" -j DROP`,
    ...ifaces.flatMap((iface) => [
      `-A ${to(direction, iface)} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`,
      `-A ${to(direction, iface)} -m conntrack --ctstate INVALID -j DROP`,
      ...(direction === 'fw'
        ? [`-A ${to(direction, iface)} -m addrtype --dst-type LOCAL -p tcp -m tcp --dport ${deniedPort} -j DROP`]
        : []),
      `-A ${to(direction, iface)} -j MARK --set-xmark 0x10000/0x10000`,
    ]),
  ])
  const chains = ['npl-INPUT', 'npl-FORWARD', 'npl-OUTPUT', 'npl-wl-to-host', dispatch('fw'), dispatch('tw')]
  const ofPods = ifaces.flatMap((iface) => [to('fw', iface), to('tw', iface)])
  return [
    '*raw',
    ':npl-PREROUTING - [0:0]',
    ':npl-rpf-skip - [0:0]',
    `-A PREROUTING ${own('6gwbT8clXdHdC1b1')} -j npl-PREROUTING`,
    '-A npl-PREROUTING -i npl+ -j MARK --set-xmark 0x40000/0x40000',
    '-A npl-PREROUTING -m mark --mark 0x40000/0x40000 -j npl-rpf-skip',
    '-A npl-PREROUTING -m mark --mark 0x40000/0x40000 -m rpfilter --validmark --invert -j DROP',
    'COMMIT',
    '*nat',
    ':npl-POSTROUTING - [0:0]',
    ':npl-nat-outgoing - [0:0]',
    `-A POSTROUTING ${own('O3lYWMrLQYEMJtB5')} -j npl-POSTROUTING`,
    '-A npl-POSTROUTING -j npl-nat-outgoing',
    `-A npl-nat-outgoing -s ${pods} ! -d ${pods} -m addrtype ! --dst-type LOCAL -j MASQUERADE --random-fully`,
    ...(tunnel === undefined
      ? []
      : [`-A npl-POSTROUTING -o ${tunnel} -m addrtype ! --src-type LOCAL --limit-iface-out -m addrtype --src-type LOCAL -j MASQUERADE`]),
    'COMMIT',
    '*filter',
    ...[...chains, ...ofPods].map((chain) => `:${chain} - [0:0]`),
    `-A INPUT ${own('Cz_u1IQiXIMmKD4c')} -j npl-INPUT`,
    `-A FORWARD ${own('wUHhoiAYhphO9Mso')} -j npl-FORWARD`,
    `-A FORWARD ${own('S93hcgKJrXEqnTfs')} -m comment --comment "Policy explicitly accepted packet." ${MARKED} -j ACCEPT`,
    `-A FORWARD ${own('mp77cMpurHhyjLrM')} -j MARK --set-xmark 0x10000/0x10000`,
    `-A OUTPUT ${own('tVnHkvAo15HuiPy0')} -j npl-OUTPUT`,
    '-A npl-INPUT -i npl+ -g npl-wl-to-host',
    `-A npl-wl-to-host -j ${dispatch('fw')}`,
    '-A npl-wl-to-host -m comment --comment "Configured DefaultEndpointToHostAction" -j ACCEPT',
    `-A npl-FORWARD -i npl+ -j ${dispatch('fw')}`,
    `-A npl-FORWARD -o npl+ -j ${dispatch('tw')}`,
    '-A npl-OUTPUT -o npl+ -j RETURN',
    ...policies,
    'COMMIT',
    '',
  ].join('\n')
}
