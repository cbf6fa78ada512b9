// SPDX-License-Identifier: Apache-2.0
/** Writes of a switch: FelixConfigurations, and kube-proxy. Layer: operator. */
import type { PatchOptions } from '#lib/api/client.ts'
import { isAbsent } from '#lib/api/absent.ts'
import { lockable, type LockableApi } from '#lib/api/lockable.ts'
import { namedOf, type ApiObject, type Named } from '#lib/api/resource.ts'
import { mapLimited } from '#lib/base/async/map-limited.ts'
import { fieldsOf, objectsIn } from '#lib/base/object.ts'
import type { Mode } from '#lib/kube/objects/node-network-status.ts'
import type { Log } from '#lib/obs/log.ts'
import { FIELD_MANAGER, settersOf } from '../objects/owned-fields.ts'
import { textOf, troubleOf, type Trouble } from '../objects/owned-objects.ts'
import { MARK, markText } from './mark.ts'
import { overrideName } from './observed.ts'
import { PLATFORM_NETWORK, STOP_LABEL, STOP_VALUE } from './proxy-found.ts'
import type { SwitchWrite } from './situation.ts'

export interface SwitchWriterOptions {
  readonly client: LockableApi
  readonly log: Log
  /** why no object of netplane.io may be written; undefined: they may */
  readonly whyLocked: () => string | undefined
  /** false once another process may act */
  readonly mayAct: () => boolean
}

/** As it is by a write: `object` undefined: it is gone. */
export interface Written {
  readonly named: Named
  readonly object: ApiObject | undefined
}

export interface SwitchWriteInput {
  readonly writes: readonly SwitchWrite[]
  /** by "/name" */
  readonly configurations: ReadonlyMap<string, ApiObject>
  /** by which kube-proxy is stopped: its DaemonSet, or what the platform's own operator goes by */
  readonly proxy: Named
  /** rules of kube-proxy stay for good */
  readonly keepsProxyRules: boolean
  readonly signal: AbortSignal
}

/** of a large cluster's writes */
const AT_ONCE = 16

/** Of FelixConfigurations: agents leave the rules of kube-proxy where it is false. */
const RULES_FIELD = 'bpfProxyIptablesCleanupEnabled'
const OUR_FIELDS: ReadonlySet<string> = new Set(['bpfEnabled', RULES_FIELD])

const FELIX = { apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration' } as const

export class SwitchWriter {
  readonly #options: SwitchWriterOptions
  readonly #client: LockableApi

  constructor(options: SwitchWriterOptions) {
    this.#options = options
    this.#client = lockable(options.client, options.whyLocked)
  }

  async write(input: SwitchWriteInput): Promise<{ readonly written: readonly Written[]; readonly troubles: readonly Trouble[] }> {
    const written: Written[] = []
    // in any order: each step goes by what is there then
    const troubles = await mapLimited(input.writes, AT_ONCE, async (write) => {
      if (!this.#options.mayAct()) return undefined
      return await troubleOf(nameOf(write, input), async () => {
        written.push(await this.#one(write, input))
        this.#options.log.info(fieldsOf(write), 'switch.written')
        return undefined
      })
    })
    return { written, troubles: troubles.filter((trouble) => trouble !== undefined) }
  }

  /** What keeps some of them from being released. */
  async releaseAll(all: readonly ApiObject[], signal: AbortSignal): Promise<readonly Trouble[]> {
    const troubles = await mapLimited(all, AT_ONCE, async (found) => {
      if (!this.#options.mayAct()) return undefined
      return await troubleOf(textOf(found), async () => {
        await this.release(found, signal)
        return undefined
      })
    })
    return troubles.filter((trouble) => trouble !== undefined)
  }

  /** Nothing of ours is left in it; one that only we have made goes. */
  async release(found: ApiObject, signal: AbortSignal): Promise<Written> {
    const named = namedOf(found)
    const others = Object.keys(fieldsOf(found['spec'])).filter((field) => !OUR_FIELDS.has(field))
    const { uid, resourceVersion } = found.metadata
    if (others.length === 0 && isOnlyOurs(found)) {
      const preconditions = { ...(uid !== undefined && { uid }), ...(resourceVersion !== undefined && { resourceVersion }) }
      await this.#client.delete(named, { signal, preconditions }).catch((thrown: unknown) => {
        if (!isAbsent(thrown)) throw thrown
      })
      return { named, object: undefined }
    }
    const setters = settersOf(found, RULES_FIELD)
    // what an administrator has set as well is the administrator's
    const isRulesOurs = setters.length > 0 && setters.every((setter) => setter === FIELD_MANAGER)
    const spec = { bpfEnabled: null, ...(isRulesOurs && { [RULES_FIELD]: null }) }
    return { named, object: await this.#merge(named, { metadata: { annotations: { [MARK]: null } }, spec }, signal) }
  }

  async #one(write: SwitchWrite, input: SwitchWriteInput): Promise<Written> {
    const { configurations, keepsProxyRules, signal } = input
    switch (write.kind) {
      case 'default': {
        const keeps = keepsProxyRules && write.mode === 'BPF'
        const spec = { ...specOf(write.mode), ...(keeps && { [RULES_FIELD]: false }) }
        return await this.#apply({ name: 'default' }, spec, signal)
      }
      case 'override':
        return await this.#override(write, configurations.get(`/${overrideName(write.node)}`), signal)
      case 'proxy':
        return await this.#proxy(write.runs, input)
    }
  }

  async #override(
    { node, mode, mark }: Extract<SwitchWrite, { kind: 'override' }>,
    found: ApiObject | undefined,
    signal: AbortSignal,
  ): Promise<Written> {
    const name = overrideName(node)
    const annotations = mark === undefined ? {} : { annotations: { [MARK]: markText(mark) } }
    if (mode !== undefined || found === undefined)
      return await this.#apply({ name, ...annotations }, mode === undefined ? {} : specOf(mode), signal)
    if (mark === undefined) return await this.release(found, signal)
    const named = namedOf(found)
    // also a mode that another has set
    return { named, object: await this.#merge(named, { metadata: annotations, spec: { bpfEnabled: null } }, signal) }
  }

  async #proxy(runs: boolean, { proxy: named, signal }: SwitchWriteInput): Promise<Written> {
    // that key alone: an apply would take the whole selector over, which the server keeps as one
    const nodeSelector = { [STOP_LABEL]: runs ? null : STOP_VALUE }
    const isOfPlatform = named.kind === PLATFORM_NETWORK.kind
    const spec = isOfPlatform ? { deployKubeProxy: runs } : { template: { spec: { nodeSelector } } }
    return { named, object: await this.#merge(named, { spec }, signal) }
  }

  async #apply(metadata: { readonly name: string }, spec: object, signal: AbortSignal): Promise<Written> {
    const named = { ...FELIX, name: metadata.name }
    return { named, object: await this.#client.patch(named, { ...FELIX, metadata, spec }, applied(signal)) }
  }

  async #merge(named: Named, patch: object, signal: AbortSignal): Promise<ApiObject> {
    return await this.#client.patch(named, patch, { type: 'merge', fieldManager: FIELD_MANAGER, signal })
  }
}

/** As informers have it: "kube-system/kube-proxy", "/default". */
export function placeOf({ namespace = '', name }: Named): string {
  return `${namespace}/${name}`
}

function applied(signal: AbortSignal): PatchOptions {
  return { type: 'apply', fieldManager: FIELD_MANAGER, force: true, signal }
}

function specOf(mode: Mode): object {
  return { bpfEnabled: mode === 'BPF' }
}

function nameOf(write: SwitchWrite, { proxy }: SwitchWriteInput): string {
  if (write.kind === 'default') return `${FELIX.kind} default`
  if (write.kind === 'override') return `${FELIX.kind} ${overrideName(write.node)}`
  return `${proxy.kind} ${placeOf(proxy)}`
}

/** No other client has written anything of it. */
function isOnlyOurs({ metadata }: ApiObject): boolean {
  const entries = objectsIn(metadata['managedFields'])
  return entries.length > 0 && entries.every(({ manager }) => manager === FIELD_MANAGER)
}
