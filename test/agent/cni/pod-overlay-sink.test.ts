// SPDX-License-Identifier: Apache-2.0
/** Pods whose addresses are known here first. Layer: test. */
import { describe, expect, test } from 'vitest'
import { formatAddr, parseAddr } from '#lib/base/ip.ts'
import { parseObject } from '#lib/kube/parse/parse-object.ts'
import type { Pod } from '#lib/model/pod.ts'
import type { PodEvent } from '#lib/store/source.ts'
import { Store } from '#lib/store/store.ts'
import { OrphanedSandboxes } from '#agent/cni/orphaned-sandboxes.ts'
import { PodOverlaySink } from '#agent/cni/pod-overlay-sink.ts'
import { podMtu } from '#agent/cni/networking/mtu.ts'
import { pod } from '../../support/build.ts'

const WEB = { namespace: 'default', name: 'web' }
const VETH = { iface: 'veth1', ours: true, addresses: [parseAddr('10.0.0.1')] }

function podOf(of: Parameters<typeof pod>[1]): Pod {
  const parsed = parseObject(pod('web', of), { kind: 'Pod', ...WEB })
  if (parsed.kind !== 'ok' || parsed.value.kind !== 'Pod') throw new Error(JSON.stringify(parsed))
  return parsed.value
}

function world() {
  const store = new Store({ sources: ['s'] })
  const into = store.sink('s')
  into.synced()
  const pods = new PodOverlaySink('n1', into)
  const sink = {
    apply: (events: readonly PodEvent[]): void => {
      into.apply(events.map((event) => pods.passOn(event)))
    },
  }
  const seen = (): string[] | undefined => store.snapshot.pods.get('default/web')?.podIPs.map(formatAddr)
  return { pods, sink, seen, store }
}

describe('attached pods', () => {
  test('have the address of their veth, whatever the source says and whichever comes first', () => {
    for (const first of ['pod', 'veth']) {
      const { pods, sink, seen, store } = world()
      const steps = [
        () => {
          sink.apply([{ kind: 'upsert', object: podOf({ node: 'n1', labels: { app: 'web' } }) }])
        },
        () => {
          pods.attach(WEB, VETH)
        },
      ]
      for (const step of first === 'pod' ? steps : steps.toReversed()) step()
      expect(seen()).toEqual(['10.0.0.1'])
      expect(store.snapshot.pods.get('default/web')?.labels.get('app')).toBe('web')
      sink.apply([{ kind: 'upsert', object: podOf({ node: 'n1', ips: ['10.0.0.9'] }) }])
      expect(seen()).toEqual(['10.0.0.1'])
      pods.attach(WEB, undefined)
      expect(seen()).toEqual(['10.0.0.9'])
    }
  })

  test('that are created again keep the veth of the pod before, as a former one, until they are attached', () => {
    const { pods, sink, store } = world()
    const veth = () => store.snapshot.pods.get('default/web')?.veth
    const apply = (uid: string) => {
      sink.apply([{ kind: 'upsert', object: { ...podOf({ node: 'n1' }), uid } }])
    }
    apply('one')
    pods.attach(WEB, { ...VETH, uid: 'one' })
    expect(veth()).toEqual({ iface: 'veth1', ours: true })
    apply('two')
    expect(veth()).toEqual({ iface: 'veth1', ours: true, former: true })
    pods.attach(WEB, { ...VETH, uid: 'two' })
    expect(veth()).toEqual({ iface: 'veth1', ours: true })
    // its runtime does not say whose it is
    pods.attach(WEB, VETH)
    expect(veth()).toEqual({ iface: 'veth1', ours: true })
  })

  test('are no pods of the snapshot while no source knows their labels', () => {
    const { pods, sink, seen } = world()
    pods.attach(WEB, VETH)
    expect([seen(), pods.known(WEB)]).toEqual([undefined, undefined])
    sink.apply([{ kind: 'upsert', object: podOf({ node: 'n1' }) }])
    sink.apply([{ kind: 'delete', ref: { kind: 'Pod', ...WEB } }])
    expect([seen(), pods.known(WEB)]).toEqual([undefined, undefined])
  })

  test('are of this node: one of the same name elsewhere, or in the host network, is as its source has it', () => {
    const { pods, sink, seen } = world()
    pods.attach(WEB, VETH)
    sink.apply([{ kind: 'upsert', object: podOf({ node: 'n1' }) }])
    sink.apply([{ kind: 'upsert', object: podOf({ node: 'n2', ips: ['10.0.0.9'] }) }])
    expect([seen(), pods.known(WEB)]).toEqual([['10.0.0.9'], undefined])
    sink.apply([{ kind: 'upsert', object: podOf({ node: 'n1', hostNetwork: true, ips: ['192.0.2.1'] }) }])
    expect(seen()).toEqual(['192.0.2.1'])
  })
})

test('a pod has the veth that discovery found for it, unless the runtime has named another', () => {
  const { pods, sink, store } = world()
  const veth = (): unknown => store.snapshot.pods.get('default/web')?.veth
  const names = (): string[] => pods.unattached().map(({ name }) => name)
  sink.apply([{ kind: 'upsert', object: podOf({ node: 'n1' }) }])
  expect(names()).toEqual([])
  sink.apply([{ kind: 'upsert', object: podOf({ node: 'n1', ips: ['10.0.0.9'] }) }])
  expect(names()).toEqual(['web'])
  pods.find(WEB, 'veth7')
  expect([veth(), pods.unattached()[0]?.veth]).toEqual([
    { iface: 'veth7', ours: false },
    { iface: 'veth7', ours: false },
  ])
  pods.attach(WEB, VETH)
  expect([veth(), names()]).toEqual([{ iface: 'veth1', ours: true }, []])
  pods.attach(WEB, undefined)
  expect([veth(), names()]).toEqual([{ iface: 'veth7', ours: false }, []])
  // another pod of that name is somewhere else
  sink.apply([{ kind: 'delete', ref: { kind: 'Pod', ...WEB } }])
  sink.apply([{ kind: 'upsert', object: podOf({ node: 'n1', ips: ['10.0.0.9'] }) }])
  expect(veth()).toBeUndefined()
})

test('sandboxes are abandoned when their namespace has been gone for a minute, or their pod for a quarter of an hour', () => {
  const abandoned = new OrphanedSandboxes()
  const judge = (seconds: number, hasNetns: boolean, hasPod: boolean): readonly string[] =>
    abandoned.orphans([{ containerId: 'c', hasNetns, hasPod }], seconds * 1000)
  expect([judge(0, false, true), judge(50, true, true), judge(60, false, true), judge(119, false, true)].flat()).toEqual([])
  expect(judge(120, false, true)).toEqual(['c'])
  expect([judge(200, true, false), judge(1099, true, false)].flat()).toEqual([])
  expect(judge(1100, true, false)).toEqual(['c'])
})

test("a pod's packets leave room for the tunnel where there is one", () => {
  const [four, six] = [[parseAddr('10.0.0.1')], [parseAddr('10.0.0.1'), parseAddr('fd00::1')]]
  expect([
    podMtu({ mtus: [9000, 1500], overlay: false }, six),
    podMtu({ mtus: [1500], overlay: true }, four),
    podMtu({ mtus: [1500], overlay: true }, six),
    podMtu({ mtus: [], overlay: false }, four),
    podMtu({ mtus: [1300], overlay: true }, six),
    podMtu({ mtus: [1300], overlay: true }, four),
    podMtu({ mtus: [100], overlay: true }, four),
  ]).toEqual([1500, 1450, 1430, 1500, 1280, 1250, 68])
})
