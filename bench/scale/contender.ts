// SPDX-License-Identifier: Apache-2.0
/** What is measured: one that serves the services of a cluster, and how one sees that it does. Layer: bench. */
import { addrBytes, parseAddr } from '#lib/base/ip.ts'
import { InternalError } from '#lib/base/errors.ts'
import { clusterIp } from '../generate.ts'
import { cleanUp } from '../control/agent-process.ts'
import { start, type Sandbox } from '../control/sandbox.ts'
import { countRows, ServiceRows } from '../control/rows.ts'
import { cpuOf } from '../base/process.ts'
import type { Contender, Sync } from './result.ts'
import { KubeProxyProcess } from './kube-proxy.ts'
import { ENDPOINTS } from './objects.ts'

/** It takes kube-proxy minutes. */
const SYNC_MS = 600_000

/** Disposed of, it has ended, and nothing of it is in the kernel. */
export interface Running extends AsyncDisposable {
  readonly pid: number
  readonly sync: Sync
  /** looks for this endpoint of service `at`, each time it is asked */
  endpoint(at: number, address: string): Promise<Lookup>
}

export interface Lookup {
  sees(): boolean | Promise<boolean>
  close(): void
}

export interface Options {
  readonly ground: Sandbox
  readonly programs: string
  readonly kubeconfig: string
  readonly services: number
}

/** Resolves when it serves all of them. */
export async function startContender(contender: Contender, options: Options): Promise<Running> {
  return contender === 'netplane' ? await startAgent(options) : await startProxy(options)
}

async function startAgent({ ground, kubeconfig, services }: Options): Promise<Running> {
  const place = { ...ground.place, kubeconfig }
  const agent = start({ ...ground, place })
  const sync = { seconds: await agent.ready(SYNC_MS), cpuMs: cpuOf(agent.pid) }
  const rows = await countRows(place.pinDir)
  if (rows.frontends < services || rows.backends < services * ENDPOINTS)
    throw new InternalError(`ready with ${rows.frontends} services and ${rows.backends} backends`)
  return {
    pid: agent.pid,
    sync,
    endpoint: (at, address) => {
      const rows = new ServiceRows(place.pinDir, clusterIp(at))
      const wanted = addrBytes(parseAddr(address))
      return Promise.resolve({ sees: () => rows.has(wanted), close: () => rows.close() })
    },
    [Symbol.asyncDispose]: async () => {
      await agent.end('SIGTERM')
      await cleanUp(place, ground.cgroup)
    },
  }
}

async function startProxy({ ground, programs, kubeconfig, services }: Options): Promise<Running> {
  const proxy = KubeProxyProcess.start({ programs, kubeconfig, node: ground.place.node, log: ground.place.log })
  const seconds = await proxy.serves([0, services >> 1, services - 1].map(clusterIp), SYNC_MS)
  return {
    pid: proxy.pid,
    sync: { seconds, cpuMs: cpuOf(proxy.pid) },
    endpoint: async (at, address) => {
      const chain = await proxy.chainOf(clusterIp(at))
      return { sees: await proxy.lookIn(chain, `__${address}/`), close: () => undefined }
    },
    [Symbol.asyncDispose]: () => proxy.end(),
  }
}
