// SPDX-License-Identifier: Apache-2.0
/** A node's kernel in memory, as an agent uses it: interfaces, hooks, generations of programs and their maps.
 * Layer: test. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { AllHooks } from '#agent/dataplane/attach/kernel-hooks.ts'
import type { Features } from '#agent/dataplane/programs/kernel-features.ts'
import type { Interfaces } from '#agent/interfaces/table.ts'
import type { NodeKernel } from '#agent/run/node-kernel.ts'
import type { TunnelWire } from '#agent/watch/tunnel/probe.ts'
import { FakeClock } from './fake-clock.ts'
import { FakeGenerations } from './fake-generations.ts'
import { FakeHooks } from './fake-hooks.ts'
import { FakeNetlink, type FakeLink } from './fake-netlink.ts'

const SYSCTLS = ['net/ipv4/ip_forward', 'net/ipv4/conf/all/rp_filter', 'net/ipv6/conf/all/forwarding']

export const NEW_FEATURES: Features = {
  ...{ jiffies64: 'yes', get_netns_cookie: 'yes', redirect_neigh: 'yes', redirect_peer: 'yes', ktime_get_coarse_ns: 'yes' },
  ...{
    recvmsg4: 'yes',
    recvmsg6: 'yes',
    getpeername4: 'yes',
    getpeername6: 'yes',
    global_functions: 'yes',
    decap_l4_udp: 'yes',
    tunnel_source: 'yes',
    ring_buffer: 'yes',
    hz: 1000,
    netns: '0',
  },
}

/** What agents leave in it stays for the next one. */
export class FakeKernel implements NodeKernel {
  readonly sysctls: string
  /** of interfaces and cgroups, XDP, and the tunnel's device */
  readonly hooked = { interfaces: new FakeHooks(), xdp: new FakeHooks(), tunnel: new FakeHooks(), cgroup: new FakeHooks() }
  readonly programs: FakeGenerations
  /** why its programs cannot run */
  unsupported: string | undefined
  /** what happens to its interfaces is heard of here, once an agent has opened it */
  readonly links = new FakeNetlink()
  /** commands that were to be run */
  readonly commands: string[] = []
  #interfaces: Interfaces | undefined

  /** `folder` is for its /proc/sys */
  constructor(folder: string, ...links: FakeLink[]) {
    this.sysctls = join(folder, 'sys')
    for (const link of links) this.links.set(link, { quiet: true })
    for (const path of SYSCTLS) {
      mkdirSync(dirname(join(this.sysctls, path)), { recursive: true })
      writeFileSync(join(this.sysctls, path), '0\n')
    }
    const interfaces: Interfaces = {
      all: () => this.#interfaces?.all() ?? [],
      byName: (name) => this.#interfaces?.byName(name),
      local: () => this.#interfaces?.local() ?? [],
    }
    this.programs = new FakeGenerations({ interfaces, clock: new FakeClock() })
  }

  /** on which nothing comes in, and nothing leaves */
  readonly tunnelWire: TunnelWire = {
    listen: () => ({ packets: () => [], [Symbol.dispose]: () => undefined }),
    open: () => ({ mtu: 1500, send: () => undefined, [Symbol.dispose]: () => undefined }),
  }

  readonly run = (command: readonly string[]): Promise<string> => {
    this.commands.push(command.join(' '))
    return Promise.resolve('')
  }

  features(): Features {
    return NEW_FEATURES
  }

  whyUnsupported(): Promise<string | undefined> {
    return Promise.resolve(this.unsupported)
  }

  openNetlink(): FakeNetlink {
    return new FakeNetlink()
  }

  openMonitor(): FakeNetlink {
    return this.links
  }

  openConnections(): undefined {
    return undefined
  }

  generations({ interfaces }: { readonly interfaces: Interfaces }): FakeGenerations {
    this.#interfaces = interfaces
    return this.programs
  }

  hooks(): AllHooks {
    const { cgroup, ...hooks } = this.hooked
    return { ...hooks, standbys: undefined, cgroup: () => cgroup, [Symbol.dispose]: () => undefined }
  }

  sysctl(path: string): string {
    return readFileSync(join(this.sysctls, path), 'utf8').trim()
  }
}
