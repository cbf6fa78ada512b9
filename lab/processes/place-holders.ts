// SPDX-License-Identifier: Apache-2.0
/** Where in cgroups and namespaces each place of a built lab is. Layer: lab. */
import { join } from 'node:path'
import { labCgroup, makeCgroup, pidsIn } from './cgroup.ts'
import { LabError } from '../errors.ts'
import type { Entry } from './launch.ts'
import { cgroupName, netnsName, type Target } from '../network/names.ts'
import { netnsInode } from '../network/netns.ts'
import { namespaceInode } from './process.ts'
import { nodeNamed, podNamed, type LabNode, type LabPod, type Topology } from '../network/topology.ts'

/** The process that keeps a node's mounts; undefined when there is none. */
export function holderOf(lab: string, node: string): number | undefined {
  return pidsIn(join(labCgroup(lab), node, 'holder'))[0]
}

/** As {@link holderOf}, but one in a namespace that has since been replaced does not count. */
export function holderInPlace(lab: string, node: LabNode): number | undefined {
  const holder = holderOf(lab, node.name)
  return holder !== undefined && namespaceInode(holder, 'net') === netnsInode(node.netns) ? holder : undefined
}

/** Throws LabError when the node is not complete. */
export function requireHolder(lab: string, node: string): number {
  const holder = holderOf(lab, node)
  if (holder === undefined) throw new LabError(`node ${node}`, 'its root process is gone: run `up` again')
  return holder
}

export function agentCgroup(lab: string, node: string): string {
  return join(labCgroup(lab), node, 'agent')
}

export function podCgroup(lab: string, pod: LabPod): string {
  return join(labCgroup(lab), cgroupName({ kind: 'pod', pod: pod.key }, pod.node))
}

export function serverCgroup(lab: string, pod: LabPod): string {
  return join(podCgroup(lab, pod), 'server')
}

/** For commands that come and go; the cgroup is made. Throws LabError when there is no such place. */
export function entryOf(topology: Topology, target: Target): Entry {
  const entry = placeOf(topology, target)
  makeCgroup(entry.cgroup)
  return entry
}

function placeOf(topology: Topology, target: Target): Entry {
  const lab = topology.lab
  const cgroup = (node?: string): string => join(labCgroup(lab), cgroupName(target, node))
  switch (target.kind) {
    case 'node': {
      const node = nodeNamed(topology, target.node)
      return { cgroup: cgroup(), netns: node.netns, holder: requireHolder(lab, node.name) }
    }
    case 'pod': {
      const pod = podNamed(topology, target.pod)
      return { cgroup: cgroup(pod.node), netns: pod.netns, holder: requireHolder(lab, pod.node) }
    }
    default:
      return { cgroup: cgroup(), netns: netnsName(lab, target), holder: undefined }
  }
}
