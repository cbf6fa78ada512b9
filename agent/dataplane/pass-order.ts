// SPDX-License-Identifier: Apache-2.0
/** In which order the parts of a pass run. Layer: agent/dataplane. */
import type { Attachments } from './attach/attachments.ts'
import type { InterfaceHook } from './attach/hook.ts'
import type { SocketLb } from './attach/socket-lb.ts'
import type { XdpAttachments } from './attach/xdp.ts'
import { TABLES, type GenerationTables, type TableName } from './generation-tables.ts'
import type { Routes } from './host/routes.ts'
import type { Sysctls } from './host/sysctls.ts'
import type { TunnelDevice } from './host/tunnel-device.ts'
import { REMOVED_AFTER, removalsOf, writesOf, type TableNow } from './map-reconcilers.ts'
import { policySteps } from './policy/steps.ts'
import type { Phase } from './reconcile/reconciler.ts'

export interface PassParts {
  readonly loaded: () => GenerationTables | undefined
  readonly sysctls: Sysctls
  readonly routes: Routes
  readonly hooks: Attachments<InterfaceHook>
  readonly connect: SocketLb
  readonly xdp: XdpAttachments
  readonly tunnel: TunnelDevice
}

/** What is referred to before what refers to it; removals last and reversed. */
export function passOrder({ loaded, sysctls, routes, hooks, connect, xdp, tunnel }: PassParts): Phase[] {
  const now = (name: TableName) => (): TableNow | undefined => {
    const tables = loaded()
    return tables && { table: tables.tables[name], holds: tables.holds }
  }
  const policy = policySteps(() => loaded()?.policy)
  const writes = (name: TableName): Phase => ({ part: writesOf(name, now(name)) })
  const [ifaces, ...others] = TABLES
  return [
    { part: sysctls },
    writes(ifaces),
    { part: policy.steps },
    { part: policy.whole, needs: [policy.steps.name] },
    { part: policy.epoch },
    ...others.map(writes),
    // a program on a device that it knows nothing of, or with half of the rules, would do harm
    { part: hooks.writes, needs: ['ifaces', policy.whole.name] },
    // programs put into the tunnel what takes such a route
    { part: routes.writes },
    { part: xdp.writesWithPolicy, needs: [policy.whole.name] },
    // programs that take our packets are there before it, which takes the rest
    { part: tunnel },
    { part: connect.writes },
    { part: connect.removals },
    { part: xdp.removals },
    { part: hooks.removals },
    { part: routes.removals },
    ...TABLES.toReversed().map((name) => ({ part: removalsOf(name, now(name)), needs: REMOVED_AFTER[name] ?? [] })),
  ]
}
