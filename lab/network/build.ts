// SPDX-License-Identifier: Apache-2.0
/** Makes the machine look like a topology: namespaces, veths, addresses, node roots. May be interrupted anywhere
 * and run again. Layer: lab. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { mapLimited } from '#lib/base/async/map-limited.ts'
import { killCgroup, labCgroup, makeCgroup, removeCgroup } from '../processes/cgroup.ts'
import { runInCgroup, type Run } from '../processes/command.ts'
import { daemonPid, spawnDetached } from '../processes/daemon.ts'
import { joinCgroup } from '../processes/launch.ts'
import { nodeRootScript } from './node-root.ts'
import { addNetns, batch, netnsExists, netnsPath, readNetns, removeNetns, writeSysctls } from './netns.ts'
import { labPaths } from '../paths.ts'
import { agentCgroup, holderInPlace, holderOf, podCgroup } from '../processes/place-holders.ts'
import {
  vethLines,
  firstSysctls,
  givenAddresses,
  gonePods,
  PLAIN_PROTOCOL,
  settleLines,
  staleAddressLines,
  type Lines,
  type NetnsState,
} from './setup.ts'
import { writeState, type LabState, type SavedOptions } from '../state.ts'
import { namespacesOf, type LabNode, type LabPod, type Topology } from './topology.ts'
import { waitFor } from '../wait.ts'

/** Commands at a time: more only take turns on small machines. */
const PARALLEL = 4
/** Where agents pin their links, in the node's root. */
const LINKS = 'sys/fs/bpf/netplane/links'
/** Agents that find no such pod in their manifests put no programs there. */
const HOOKED_MS = 5000
const EMPTY: NetnsState = new Map()

export interface BuildRequest {
  readonly before: LabState | undefined
  readonly topology: Topology
  readonly options: SavedOptions
}

/** Network, node roots, state file. No agents or servers. */
export async function build(request: BuildRequest): Promise<void> {
  const { before, topology } = request
  const wanted = namespacesOf(topology)
  rememberIntent(request, wanted)
  const work = join(labCgroup(topology.lab), '_build')
  // commands of an `up` that was killed may still be at it
  await killCgroup(work)
  makeCgroup(work)
  const run = runInCgroup(work)
  await removeGone(run, before?.topology, topology)
  await removeNetns(
    run,
    (before?.netns ?? []).filter((name) => !wanted.includes(name)),
  )
  await addNetns(run, wanted)
  await makeVeths(run, topology, wanted)
  await settle(run, topology, before)
  writeState(topology.lab, { options: request.options, topology, netns: wanted, addresses: givenAddresses(topology) })
  await mapLimited(topology.nodes, PARALLEL, (node) => ensureNodeRoot(topology, node, request.options))
}

/** All that was and all that will be: after a crash both are ours. */
function rememberIntent(request: BuildRequest, wanted: readonly string[]): void {
  const { before, topology, options } = request
  const addresses = Object.entries(givenAddresses(topology)).map(
    ([netns, now]) => [netns, [...new Set([...(before?.addresses[netns] ?? []), ...now])]] as const,
  )
  writeState(topology.lab, {
    options,
    // the pods to come have nothing to be taken down yet, those that were may have
    topology: before === undefined ? topology : { ...topology, pods: [...topology.pods, ...gonePods(before.topology, topology)] },
    netns: [...new Set([...(before?.netns ?? []), ...wanted])],
    addresses: { ...before?.addresses, ...Object.fromEntries(addresses) },
  })
}

async function removeGone(run: Run, before: Topology | undefined, now: Topology): Promise<void> {
  const lab = now.lab
  const nodes = before?.nodes.filter((node) => !now.nodes.some((next) => next.name === node.name)) ?? []
  const cgroups = [...nodes.map((node) => join(labCgroup(lab), node.name)), ...gonePods(before, now).map((pod) => podCgroup(lab, pod))]
  for (const cgroup of cgroups) {
    await killCgroup(cgroup)
    await removeCgroup(cgroup)
  }
  for (const pod of gonePods(before, now)) {
    const netns = before?.nodes.find((node) => node.name === pod.node)?.netns
    if (netns === undefined || pod.hostNetwork || !netnsExists(netns)) continue
    // the namespace's end would take it too, but only some time later
    if ((await readNetns(run, netns)).has(pod.iface)) await batch(run, [`link del dev ${pod.iface}`], netns)
  }
}

async function makeVeths(run: Run, topology: Topology, wanted: readonly string[]): Promise<void> {
  const states = await readAll(run, wanted)
  const fresh = wanted.filter((netns) => !['eth0', 'br0'].some((device) => states.get(netns)?.has(device)))
  await mapLimited(fresh, PARALLEL, (netns) => writeSysctls(run, netns, firstSysctls(topology, netns)))
  for (const [netns, lines] of vethLines(topology, (name) => states.get(name) ?? EMPTY)) await batch(run, lines, netns)
}

async function settle(run: Run, topology: Topology, before: LabState | undefined): Promise<void> {
  if (before !== undefined) {
    if (topology.plain) await mapLimited(topology.nodes, PARALLEL, (node) => flushPlainRoutes(run, node))
    const states = await readAll(run, Object.keys(before.addresses).filter(netnsExists))
    await runLines(
      run,
      staleAddressLines(topology, before.addresses, (name) => states.get(name) ?? EMPTY),
    )
  }
  const comers = newPods(topology, before?.topology)
  const lines = [...settleLines(topology)]
  const isComers = ([netns]: readonly [string, unknown]): boolean => comers.some((pod) => pod.netns === netns)
  await runLines(run, new Map(lines.filter((one) => !isComers(one))))
  await Promise.all(comers.map((pod) => hooked(topology, pod)))
  await runLines(run, new Map(lines.filter(isComers)))
}

/** Pods whose veths are made now. */
function newPods(topology: Topology, before: Topology | undefined): readonly LabPod[] {
  const old = new Set((before?.pods ?? []).map((pod) => pod.key))
  const moved = new Set(gonePods(before, topology).map((pod) => pod.key))
  return topology.pods.filter((pod) => !pod.hostNetwork && (!old.has(pod.key) || moved.has(pod.key)))
}

/** As a cluster's network plugin does, lets nothing in or out before the node's agent, if one runs, has its programs
 * there. */
async function hooked({ lab }: Topology, { node, iface }: LabPod): Promise<void> {
  const holder = holderOf(lab, node)
  if (holder === undefined || daemonPid(agentCgroup(lab, node)) === undefined) return
  const pins = ['ingress', 'egress'].map((direction) => join(`/proc/${holder}/root`, LINKS, `${iface}:${direction}`))
  await waitFor(() => (pins.every((pin) => existsSync(pin)) ? true : undefined), { timeoutMs: HOOKED_MS })
}

async function flushPlainRoutes(run: Run, node: LabNode): Promise<void> {
  for (const [family, nowhere] of [
    ['-4', '192.0.2.1'],
    ['-6', '2001:db8::1'],
  ] as const) {
    const route = ['ip', '-n', node.netns, family, 'route']
    // a namespace that was left half made has no table yet, and flush takes that for an error
    await run([...route, 'replace', 'blackhole', nowhere, 'proto', String(PLAIN_PROTOCOL)])
    await run([...route, 'flush', 'proto', String(PLAIN_PROTOCOL)])
  }
}

async function readAll(run: Run, names: readonly string[]): Promise<Map<string, NetnsState>> {
  const states = await mapLimited(names, PARALLEL, (name) => readNetns(run, name))
  return new Map(names.map((name, index) => [name, states[index] ?? EMPTY]))
}

async function runLines(run: Run, lines: Lines): Promise<void> {
  await mapLimited([...lines], PARALLEL, ([netns, commands]) => batch(run, commands, netns))
}

/** A node without its root, or with one in a namespace that is no more, is started over: its agent and pods cannot
 * live on without. */
async function ensureNodeRoot(topology: Topology, node: LabNode, options: SavedOptions): Promise<void> {
  const lab = topology.lab
  const cgroup = join(labCgroup(lab), node.name)
  if (holderInPlace(lab, node) !== undefined) return
  await killCgroup(cgroup)
  makeCgroup(cgroup)
  const paths = labPaths(lab)
  const keep = [paths.dir, ...(/^\/(var\/)?run\//.test(options.resources) ? [options.resources] : [])]
  const script = nodeRootScript({ node: node.name, stage: join(paths.dir, `stage-${node.name}`), keep })
  const unshared = ['unshare', '--mount', '--cgroup', '--uts', '--propagation', 'private', 'sh', '-euc', script]
  const command = joinCgroup(cgroup, ['nsenter', `--net=${netnsPath(node.netns)}`, ...unshared])
  await spawnDetached({ subject: `root of node ${node.name}`, log: join(paths.logs, `node-${node.name}.log`) }, command, () =>
    holderOf(lab, node.name),
  )
}
