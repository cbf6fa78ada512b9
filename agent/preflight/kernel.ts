// SPDX-License-Identifier: Apache-2.0
/** Whether the node's kernel can run the programs: found out by trying, which leaves nothing behind. Layer: agent. */
import { readFileSync } from 'node:fs'
import { release } from 'node:os'
import { join } from 'node:path'
import { raiseMemlock } from '#native'
import { RULES_PER_BLOCK } from '#lib/base/bpf-constants.ts'
import { CommandError } from '#lib/base/errors.ts'
import { toolRunner, type RunTool } from '#lib/base/os/run-tool.ts'
import { finding, type Finding } from '#lib/preflight/findings.ts'
import { isOldKernel, OLDEST_KERNEL } from '#lib/base/os/oldest-kernel.ts'
import { FLOOR_BLOCKS } from '../compile/policy/rules/rule-list.ts'
import { hasTcx } from '../dataplane/attach/tcx.ts'
import { isBpffs, whyPinsUnsafe } from '../dataplane/pins.ts'
import { probeFeatures } from '../dataplane/programs/kernel-features.ts'
import { isFloor } from '../dataplane/programs/objects.ts'
import { trialRefusal } from '../dataplane/programs/trial.ts'
import { packageObjects, unsafeKernel } from '../node/facts.ts'
import { missingCapabilities } from '../node/privileges.ts'
import { hostPathFindings } from './host-paths.ts'
import type { PreflightOptions } from './options.ts'
import type { Probed } from './probed.ts'

const TOOL_MS = 5000

type KernelOptions = Pick<PreflightOptions, 'sysFs' | 'objects' | 'nodeRoot' | 'hostPaths'>

export async function probeKernel({ sysFs, objects = packageObjects(), nodeRoot, hostPaths }: KernelOptions): Promise<Probed> {
  const missing = missingCapabilities(readFileSync('/proc/self/status', 'utf8'))
  const findings = [
    ...architectureFindings(process.arch),
    ...fileSystemFindings(sysFs, readFileSync('/proc/filesystems', 'utf8')),
    ...hostPathFindings(nodeRoot, hostPaths),
    ...jitFindings(textOf('/proc/sys/net/core/bpf_jit_enable')),
    ...(missing.length > 0 ? [finding('privileges-missing', missing.join(', '))] : await programFindings(objects)),
  ]
  return { findings, facts: { kernel: release() } }
}

export function architectureFindings(arch: string): Finding[] {
  return arch === 'x64' || arch === 'arm64' ? [] : [finding('architecture', arch)]
}

/** `known`: the text of /proc/filesystems. What the kernel knows and the node has not mounted is mounted with the
 * agent. */
export function fileSystemFindings(sysFs: string, known: string): Finding[] {
  const knows = (type: string): boolean => new RegExp(`\\t${type}$`, 'm').test(known)
  const bpffs = join(sysFs, 'bpf')
  const unsafe = whyPinsUnsafe(bpffs)
  return [
    ...(knows('bpf') || isBpffs(bpffs) ? [] : [finding('bpffs-missing')]),
    ...(unsafe === undefined ? [] : [finding('bpffs-unsafe', unsafe)]),
    ...(knows('cgroup2') ? [] : [finding('cgroup2-missing')]),
  ]
}

/** No such sysctl: it is always on. */
export function jitFindings(sysctl: string | undefined): Finding[] {
  return sysctl?.trim() === '0' ? [finding('jit-off')] : []
}

async function programFindings(objects: string): Promise<Finding[]> {
  const kernel = release()
  liftMemlock()
  const features = probeFeatures()
  const unsafe = unsafeKernel()
  const refusal = await trialRefusal(objects, features)
  const limited = isFloor(features) && refusal === undefined
  return [
    ...(unsafe === undefined ? [] : [finding('kernel-realtime', unsafe)]),
    ...(refusal === undefined ? [] : [refusalFinding(kernel, refusal)]),
    ...(limited ? [finding('kernel-limited', kernel, FLOOR_BLOCKS * RULES_PER_BLOCK)] : []),
    ...(hasTcx() ? [] : await hookFindings(toolRunner({ timeoutMs: TOOL_MS }))),
  ]
}

export function refusalFinding(kernel: string, refusal: string): Finding {
  return isOldKernel(kernel) ? finding('kernel-too-old', kernel, OLDEST_KERNEL, refusal) : finding('kernel-refuses', kernel, refusal)
}

/** In a network namespace that goes with the command. One classic instruction: drop nothing. */
const TRY_HOOKS = 'tc qdisc add dev lo clsact && tc filter add dev lo ingress bpf da bytecode "1,6 0 0 4294967295"'
/** What a shell says of a command that is not there. */
const NO_COMMAND = 127

/** Filters at clsact, which kernels before 6.6 have for want of tcx. Where there are no tools to try with, nothing is
 * told. */
export async function hookFindings(run: RunTool): Promise<Finding[]> {
  try {
    await run(['unshare', '--net', '--', 'sh', '-c', TRY_HOOKS])
    return []
  } catch (thrown) {
    if (!(thrown instanceof CommandError)) throw thrown
    if (thrown.status === NO_COMMAND || thrown.stderr.startsWith('unshare:')) return []
    return [finding('hooks-missing', 'filters of programs at clsact', thrown.stderr.trim())]
  }
}

/** Kernels before 5.11 count maps against this limit; those that do not let us refuse the programs, and say so. */
function liftMemlock(): void {
  try {
    raiseMemlock()
  } catch {
    return
  }
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
