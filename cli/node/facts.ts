// SPDX-License-Identifier: Apache-2.0
/** Parts of a bundle about the machine itself. Layer: cli. */
import { readdirSync, readFileSync, statfsSync } from 'node:fs'
import { arch, cpus, freemem, hostname, loadavg, release, totalmem, uptime } from 'node:os'
import { join } from 'node:path'
import { libbpfVersion, possibleCpus, ticksPerSecond } from '#native'
import { errorCode, errorText } from '#lib/base/errors.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import type { Part } from '../bundle/collect.ts'
import { jsonText } from './maps.ts'

/** What forwarding depends on, below /proc/sys. */
const SYSCTLS = [
  'net/core/bpf_jit_enable',
  'net/core/bpf_jit_harden',
  'net/ipv4/ip_forward',
  'net/ipv4/ip_local_port_range',
  'net/ipv6/conf/all/forwarding',
  'kernel/unprivileged_bpf_disabled',
]
const PER_DEVICE = ['accept_local', 'forwarding', 'rp_filter']
const FOLDER = '/proc/sys/net/ipv4/conf'
const FILE_SYSTEMS = / - (bpf|cgroup2?|tmpfs|overlay) /

export function factParts(): Part[] {
  return [
    { name: 'node/facts.json', about: 'machine, kernel, versions, time', read: facts },
    { name: 'node/os-release.txt', about: 'distribution', read: () => readFileSync('/etc/os-release', 'utf8') },
    { name: 'node/mounts.txt', about: 'mounts of bpf, cgroup and memory', read: mounts },
    { name: 'node/sysctls.txt', about: 'settings of the kernel that forwarding depends on', read: sysctls },
    { name: 'node/agents.txt', about: 'processes that are agents: command line, state, memory', read: agents },
  ]
}

function facts(): string {
  return jsonText({
    host: hostname(),
    time: new Date().toISOString(),
    uptimeSeconds: Math.round(uptime()),
    netplane: packageVersion(),
    node: process.version,
    libbpf: libbpfVersion(),
    kernel: release(),
    architecture: arch(),
    cpus: { online: cpus().length, possible: possibleCpus(), model: cpus()[0]?.model },
    ticksPerSecond: ticksPerSecond(),
    memory: { total: totalmem(), free: freemem() },
    load: loadavg(),
    lockdown: ownLine('/sys/kernel/security/lockdown'),
    bpffs: fileSystem('/sys/fs/bpf'),
    cgroup: fileSystem('/sys/fs/cgroup'),
    kernelBtf: fileSystem('/sys/kernel/btf/vmlinux') !== undefined,
  })
}

function ownLine(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (thrown) {
    return errorCode(thrown) ?? errorText(thrown)
  }
}

/** "cafe4a11": its magic number; undefined: there is nothing */
function fileSystem(path: string): string | undefined {
  try {
    return statfsSync(path).type.toString(16)
  } catch {
    return undefined
  }
}

function mounts(): string {
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
  return `${lines.filter((line) => FILE_SYSTEMS.test(line)).join('\n')}\n`
}

function sysctls(): string {
  const devices = readdirSync(FOLDER).sort()
  const names = [...SYSCTLS, ...devices.flatMap((device) => PER_DEVICE.map((name) => `net/ipv4/conf/${device}/${name}`))]
  return names.map((name) => `${name} = ${ownLine(join('/proc/sys', name))}\n`).join('')
}

function agents(): string {
  const found = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      const command = ownLine(join('/proc', pid, 'cmdline'))
        .replaceAll('\0', ' ')
        .trim()
      if (!/(netplane-agent|agent\/main\.[jt]s)/.test(command)) return []
      const status = ownLine(join('/proc', pid, 'status'))
      const facts = status.split('\n').filter((line) => /^(State|PPid|VmRSS|VmHWM|Threads|CapEff|Seccomp):/.test(line))
      return [[`pid ${pid}: ${command}`, ...facts].join('\n  ')]
    })
  if (found.length === 0) throw new Error('no process is an agent, as far as can be seen from here')
  return `${found.join('\n')}\n`
}
