// SPDX-License-Identifier: Apache-2.0
/** Datagrams whose fragments come last-first. Layer: test. */
import { hostPort } from '#lib/base/ip.ts'
import { toolCommand } from '../../../lab/paths.ts'
import { startCapture } from '../../../lab/traffic/capture.ts'
import { families } from '../../../testkit/packets/cluster.ts'
import { udp } from '../../../testkit/packets/packet.ts'
import { cut } from '../../kernel/packets/headers/cut.ts'
import { NODE_PORT, nodeAddress, podAddress, POD_PORT, serviceAddress, type Family, type World } from './world.ts'

/** Who sends what to whom, by the frames of its own device. */
export interface LastFirst {
  readonly place: string
  readonly macs: { readonly src: string; readonly dst: string }
  readonly from: string
  readonly to: string
}

const SOURCE_PORT = 5555

/** As clients outside do. */
export function toNodePort(world: World, family: Family): LastFirst {
  const { client, nodes } = world.lab.topology
  const macs = { src: client.mac, dst: nodes.find(({ name }) => name === 'a')?.mac ?? '' }
  return { place: 'client', macs, from: hostPort(world.client(family), SOURCE_PORT), to: hostPort(nodeAddress('a', family), NODE_PORT) }
}

/** From pod a-2 to the service, and to a pod of node c. */
export function fromPod(world: World, family: Family): readonly LastFirst[] {
  const pod = world.lab.topology.pods.find(({ key }) => key === 'default/a-2')
  const macs = { src: pod?.mac ?? '', dst: pod?.ifaceMac ?? '' }
  return [hostPort(serviceAddress(family), 80), hostPort(podAddress('c-1', family), POD_PORT)].map((to) => ({
    place: 'a-2',
    macs,
    from: hostPort(podAddress('a-2', family), SOURCE_PORT),
    to,
  }))
}

/** What the sender captures of the answer to a datagram of three fragments of `part` bytes. */
export async function answersToLastFirst(world: World, { place, macs, from, to }: LastFirst, part: number): Promise<readonly string[]> {
  const of = families.find(({ v4 }) => v4 === !from.startsWith('['))
  if (of === undefined) throw new Error(`no family of ${from}`)
  const fragment = (offset: number): string => {
    const more = offset < 2 * part
    const whole = udp(from, to, { payload: new Uint8Array(3 * part - 8), id: 4711, fragment: { offset, more }, macs })
    return frameText(cut(of, whole, part))
  }
  const answers = `udp and dst port ${SOURCE_PORT} and src port ${to.split(':').at(-1)}`
  const capture = await startCapture(world.lab, { place, device: 'eth0', filter: answers })
  await world.lab.mustRun(place, [...toolCommand('send-frames'), 'eth0', ...[2 * part, part, 0].map(fragment)])
  return await capture.stop(1)
}

/** As send-frames reads it. */
function frameText(frame: Uint8Array): string {
  const end = frame.findLastIndex((byte) => byte !== 0) + 1
  return `${Buffer.from(frame.subarray(0, end)).toString('hex')}+${frame.length - end}`
}
