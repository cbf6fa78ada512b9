// SPDX-License-Identifier: Apache-2.0
/** Ports of this node that the kernel redirects to other ports of it, by an nftables table of our own.
 * Layer: agent/dataplane. */
import { netfilterTools } from '#agent/interfaces/netlink/nf-tables.ts'
import { redirectEndInput, redirectInput } from './rules.ts'

/** A kube-proxy that comes must not find the ports taken because a tool is slow. */
const inTime = netfilterTools({ timeoutMs: 2000 })
const patiently = netfilterTools({ timeoutMs: 60_000 })

/** From which port to which; all at once, in place of those before. False where `nft` is not installed. Throws
 * CommandError. */
export async function redirectPorts(ports: ReadonlyMap<number, number>): Promise<boolean> {
  return (await inTime(['nft', '-f', '-'], redirectInput(ports))) !== undefined
}

/** True when there was anything to end, also of an agent before. Connections that were redirected may end with it.
 * Throws CommandError. */
export async function endPortRedirects(): Promise<boolean> {
  const input = redirectEndInput((await patiently(['nft', 'list', 'tables'])) ?? '')
  if (input !== '') await patiently(['nft', '-f', '-'], input)
  return input !== ''
}
