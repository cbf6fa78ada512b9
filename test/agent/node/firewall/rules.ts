// SPDX-License-Identifier: Apache-2.0
/** The rules that well-known programs are known to make, as their tools take them. Layer: test. */

/** `iptables-restore`: Docker 27's filter table, with its bridge and no container in it. */
export const DOCKER = `*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:DOCKER - [0:0]
:DOCKER-FORWARD - [0:0]
:DOCKER-BRIDGE - [0:0]
:DOCKER-CT - [0:0]
:DOCKER-ISOLATION-STAGE-1 - [0:0]
:DOCKER-ISOLATION-STAGE-2 - [0:0]
:DOCKER-USER - [0:0]
-A FORWARD -j DOCKER-USER
-A FORWARD -j DOCKER-FORWARD
-A DOCKER ! -i docker0 -o docker0 -j DROP
-A DOCKER-FORWARD -j DOCKER-CT
-A DOCKER-FORWARD -j DOCKER-ISOLATION-STAGE-1
-A DOCKER-FORWARD -j DOCKER-BRIDGE
-A DOCKER-FORWARD -i docker0 -j ACCEPT
-A DOCKER-BRIDGE -o docker0 -j DOCKER
-A DOCKER-CT -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A DOCKER-ISOLATION-STAGE-1 -i docker0 ! -o docker0 -j DOCKER-ISOLATION-STAGE-2
-A DOCKER-ISOLATION-STAGE-1 -j RETURN
-A DOCKER-ISOLATION-STAGE-2 -o docker0 -j DROP
-A DOCKER-ISOLATION-STAGE-2 -j RETURN
-A DOCKER-USER -j RETURN
COMMIT
`

/** IPv6 has no such chain. */
const NOT_LOCAL = [
  '-A ufw-not-local -m addrtype --dst-type LOCAL -j RETURN',
  '-A ufw-not-local -m addrtype --dst-type MULTICAST -j RETURN',
  '-A ufw-not-local -m addrtype --dst-type BROADCAST -j RETURN',
  '-A ufw-not-local -m limit --limit 3/min --limit-burst 10 -j ufw-logging-deny',
  '-A ufw-not-local -j DROP',
]

/** `iptables-restore`: ufw with its defaults (nothing in, nothing through, everything out) and port 22 open. */
export function ufw(family: 4 | 6): string {
  const p = family === 4 ? 'ufw' : 'ufw6'
  const icmp =
    family === 4
      ? ['icmp -m icmp --icmp-type 3', 'icmp -m icmp --icmp-type 11', 'icmp -m icmp --icmp-type 8']
      : ['ipv6-icmp -m icmp6 --icmpv6-type 2', 'ipv6-icmp -m icmp6 --icmpv6-type 135', 'ipv6-icmp -m icmp6 --icmpv6-type 136']
  const before = (hook: string): string => `${p}-before-${hook}`
  const user = ['input', 'forward', 'output'].map((hook) => `${p}-user-${hook}`)
  const chains = ['input', 'forward', 'output'].flatMap((hook) =>
    ['before-logging', 'before', 'after', 'after-logging', 'reject', 'track'].map((kind) => `${p}-${kind}-${hook}`),
  )
  const mdns = family === 4 ? '224.0.0.251/32' : 'ff02::fb/128'
  return [
    '*filter',
    ':INPUT DROP [0:0]',
    ':FORWARD DROP [0:0]',
    ':OUTPUT ACCEPT [0:0]',
    ...[...chains, ...user, `${p}-logging-deny`, `${p}-not-local`, `${p}-skip-to-policy-input`].map((chain) => `:${chain} - [0:0]`),
    ...['input', 'forward', 'output'].flatMap((hook) =>
      ['before-logging', 'before', 'after', 'after-logging', 'reject', 'track'].map(
        (kind) => `-A ${hook.toUpperCase()} -j ${p}-${kind}-${hook}`,
      ),
    ),
    `-A ${p}-after-input -p udp -m udp --dport 137 -j ${p}-skip-to-policy-input`,
    `-A ${p}-after-logging-input -m limit --limit 3/min --limit-burst 10 -j LOG --log-prefix "[UFW BLOCK] "`,
    `-A ${before('input')} -i lo -j ACCEPT`,
    `-A ${before('input')} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`,
    `-A ${before('input')} -m conntrack --ctstate INVALID -j ${p}-logging-deny`,
    `-A ${before('input')} -m conntrack --ctstate INVALID -j DROP`,
    ...icmp.map((match) => `-A ${before('input')} -p ${match} -j ACCEPT`),
    `-A ${before('input')} -p udp -m udp --sport 67 --dport 68 -j ACCEPT`,
    ...(family === 4 ? [`-A ${before('input')} -j ${p}-not-local`] : []),
    `-A ${before('input')} -d ${mdns} -p udp -m udp --dport 5353 -j ACCEPT`,
    `-A ${before('input')} -j ${p}-user-input`,
    `-A ${before('forward')} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`,
    ...icmp.map((match) => `-A ${before('forward')} -p ${match} -j ACCEPT`),
    `-A ${before('forward')} -j ${p}-user-forward`,
    `-A ${before('output')} -o lo -j ACCEPT`,
    `-A ${before('output')} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`,
    `-A ${before('output')} -j ${p}-user-output`,
    `-A ${p}-logging-deny -m conntrack --ctstate INVALID -m limit --limit 3/min --limit-burst 10 -j RETURN`,
    `-A ${p}-logging-deny -m limit --limit 3/min --limit-burst 10 -j LOG --log-prefix "[UFW BLOCK] "`,
    ...(family === 4 ? NOT_LOCAL : []),
    `-A ${p}-skip-to-policy-input -j DROP`,
    `-A ${p}-track-output -p tcp -m conntrack --ctstate NEW -j ACCEPT`,
    `-A ${p}-track-output -p udp -m conntrack --ctstate NEW -j ACCEPT`,
    `-A ${p}-user-input -p tcp -m tcp --dport 22 -j ACCEPT`,
    'COMMIT',
    '',
  ].join('\n')
}

/** `nft -f`: firewalld 1.3 with its default zone, public, and no device bound to a zone. */
export const FIREWALLD = `table inet firewalld {
  chain filter_INPUT {
    type filter hook input priority filter + 10; policy accept;
    ct state { established, related } accept
    ct status dnat accept
    iifname "lo" accept
    ct state invalid drop
    jump filter_INPUT_ZONES
    reject with icmpx admin-prohibited
  }
  chain filter_FORWARD {
    type filter hook forward priority filter + 10; policy accept;
    ct state { established, related } accept
    ct status dnat accept
    iifname "lo" accept
    ct state invalid drop
    ip6 daddr { ::/96, ::ffff:0.0.0.0/96, 2002::/24, 2002:a00::/24 } reject with icmpv6 addr-unreachable
    jump filter_FORWARD_ZONES
    reject with icmpx admin-prohibited
  }
  chain filter_OUTPUT {
    type filter hook output priority filter + 10; policy accept;
    ct state { established, related } accept
    oifname "lo" accept
    ip6 daddr { ::/96, ::ffff:0.0.0.0/96, 2002::/24, 2002:a00::/24 } reject with icmpv6 addr-unreachable
  }
  chain filter_INPUT_ZONES {
    goto filter_IN_public
  }
  chain filter_FORWARD_ZONES {
    goto filter_FWD_public
  }
  chain filter_IN_public {
    jump filter_INPUT_POLICIES_pre
    jump filter_IN_public_allow
    meta l4proto { icmp, ipv6-icmp } accept
    reject with icmpx admin-prohibited
  }
  chain filter_IN_public_allow {
    tcp dport 22 ct state new accept
    ip6 daddr fe80::/64 udp dport 546 ct state new accept
  }
  chain filter_FWD_public {
    jump filter_FWD_public_allow
    reject with icmpx admin-prohibited
  }
  chain filter_FWD_public_allow {
  }
  chain filter_INPUT_POLICIES_pre {
    jump filter_IN_policy_allow-host-ipv6
  }
  chain filter_IN_policy_allow-host-ipv6 {
    icmpv6 type nd-neighbor-advert accept
    icmpv6 type nd-neighbor-solicit accept
    icmpv6 type nd-router-advert accept
    icmpv6 type nd-redirect accept
  }
}
`
