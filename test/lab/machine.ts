// SPDX-License-Identifier: Apache-2.0
/** What a lab must leave alone, and what must be gone after it, for the lab's tests. */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { labCgroup } from '../../lab/processes/cgroup.ts'
import { labPaths } from '../../lab/paths.ts'

/** The machine's own view of things that a lab has of its own: must be the same before, during and after. */
export function machine(): Record<string, unknown> {
  return {
    // iproute2 binds /run/netns on itself at its first use; any process of this machine may name
    // namespaces there
    mounts: readFileSync('/proc/self/mounts', 'utf8')
      .split('\n')
      .filter((line) => !line.includes(' /run/netns')),
    bpffs: existsSync('/sys/fs/bpf') ? readdirSync('/sys/fs/bpf') : [],
    hostname: readFileSync('/proc/sys/kernel/hostname', 'utf8'),
    run: readdirSync('/run').filter((name) => !['netns', 'netplane-lab'].includes(name)),
    forwarding: ['ipv4/ip_forward', 'ipv6/conf/all/forwarding', 'ipv4/conf/all/rp_filter', 'ipv4/conf/default/rp_filter'].map((path) =>
      readFileSync(`/proc/sys/net/${path}`, 'utf8'),
    ),
    addresses: execFileSync('ip', ['-o', 'addr', 'show'], { encoding: 'utf8' }).replaceAll(/_lft \w+/g, ''),
    routes: execFileSync('ip', ['route', 'show', 'table', 'all'], { encoding: 'utf8' }),
  }
}

/** Everything that carries the lab's name, wherever; empty after `down`. */
export function traces(lab: string): string[] {
  const netns = existsSync('/run/netns') ? readdirSync('/run/netns').filter((name) => name.startsWith(`nplab-${lab}-`)) : []
  const places = [labCgroup(lab), labPaths(lab).dir].filter((path) => existsSync(path))
  return [...netns, ...places, ...processes(lab)]
}

/** Processes whose command line or cgroup names the lab, other than this one. */
function processes(lab: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      try {
        const text = readFileSync(join('/proc', pid, 'cmdline'), 'utf8').replaceAll('\0', ' ')
        const cgroup = readFileSync(join('/proc', pid, 'cgroup'), 'utf8')
        // nothing but a number that its parent has yet to take
        if (text === '') return []
        return text.includes(`nplab-${lab}-`) || cgroup.includes(`/netplane-lab/${lab}/`) ? [`pid ${pid}: ${text}`] : []
      } catch {
        // ended meanwhile
        return []
      }
    })
}
