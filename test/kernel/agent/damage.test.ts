// SPDX-License-Identifier: Apache-2.0
/** The whole agent on a node where strangers remove what is its own. Layer: test. */
import { existsSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { BpfLink, BpfProgram } from '#native'
import { hasTcx } from '#agent/dataplane/attach/tcx.ts'
import type { ScratchNode } from '../../../testkit/base/scratch-node.ts'
import { globalPolicy, hostEndpoint } from './manifests.ts'
import { links, makeNode, PINS } from './node.ts'

let machine: ScratchNode

beforeEach(async () => {
  machine = await makeNode()
})

afterEach(async () => {
  await machine[Symbol.asyncDispose]()
})

/** links that are on an interface, not cut off from it */
function onInterfaces(): number {
  return Object.entries(links(machine)).filter(([name, link]) => !name.startsWith('cgroup') && !link.endsWith(' 0')).length
}

function detach(): void {
  const link = BpfLink.openPin(machine.path(`${PINS}/links/eth0:ingress`))
  link.detach()
  link.close()
}

const STANDBYS = ['from_host', 'to_host', 'from_workload', 'to_workload'].map((hook) => `tc-standby_${hook}`)

function programId(pin: string): number {
  const program = BpfProgram.openPin(machine.sh(`ls ${machine.path(PINS)}/programs/*/${pin}`).trim())
  const { id } = program.info()
  program.close()
  return id
}

/** How many links each of the programs has, on the whole machine. */
function linked(programs: readonly number[]): number[] {
  const all = JSON.parse(machine.sh('bpftool --json link')) as readonly { readonly prog_id?: number }[]
  return programs.map((id) => all.filter((link) => link.prog_id === id).length)
}

describe('what strangers remove is found and put back', () => {
  const damages: readonly (readonly [string, () => void])[] = [
    ['the pin of a link', () => machine.sh('rm /sys/fs/bpf/netplane/links/eth0:ingress')],
    ['a link', detach],
    ['every link, with its folder', () => machine.sh('rm -r /sys/fs/bpf/netplane/links')],
    ['a map’s pin', () => machine.sh('rm /sys/fs/bpf/netplane/maps/np_ct')],
    ['a tail-call array', () => machine.sh('rm /sys/fs/bpf/netplane/programs/*/tc-np_tail')],
    ['all pins', () => machine.sh('rm -r /sys/fs/bpf/netplane')],
  ]

  test.each(damages)('%s', async (_, damage) => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    const pins = (): string => machine.sh('find /sys/fs/bpf/netplane -type f | sed s,programs/[^/]*,programs, | sort')
    const before = pins()
    damage()
    await agent.event('drift.found')
    await agent.until('the pins to be whole', () => existsSync(machine.path(PINS)) && pins() === before && onInterfaces() === 4)
  })

  test('the file system of the pins, once there is one again', async () => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    machine.sh('mount -t tmpfs none /sys/fs/bpf')
    await agent.event('programs.rejected')
    machine.sh('umount /sys/fs/bpf')
    await agent.event('programs.ready', 2)
    await agent.until('the hooks to be pinned', () => onInterfaces() === 4)
  })

  test('the XDP program of a device with untracked rules', async () => {
    const untracked = { selector: "host == 'up'", doNotTrack: true, applyOnForward: true, ingress: [{ action: 'Allow' }] }
    machine.put('policy.json', [hostEndpoint('up', { node: 'n1', interfaceName: 'eth0' }), globalPolicy('untracked', untracked)])
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    const isThere = (): boolean => machine.sh('ip -details link show eth0').includes('prog/xdp')
    await agent.until('the XDP program', isThere)
    machine.sh('ip link set eth0 xdp off; ip link set eth0 xdpgeneric off')
    await agent.event('drift.found')
    await agent.until('the XDP program again', isThere)
  })

  test.skipIf(!hasTcx())(
    'behind each link a program stands by; it becomes the link that was detached, and ends with the agent',
    async () => {
      const agent = machine.agent()
      await agent.event('dataplane.ready')
      const ids = STANDBYS.map(programId)
      await expect.poll(() => linked(ids)).toEqual([1, 1, 1, 1])
      detach()
      await agent.event('drift.found')
      await expect.poll(() => [onInterfaces(), ...linked(ids)]).toEqual([4, 1, 1, 1, 1])
      await agent.kill()
      await expect.poll(() => linked(ids)).toEqual([0, 0, 0, 0])
    },
  )

  test('a route', async () => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    machine.sh('ip route del 10.1.2.0/24')
    await agent.event('drift.found')
    await agent.until('the route', () => machine.sh('ip route show proto 80').includes('10.1.2.0/24'))
  })
})
