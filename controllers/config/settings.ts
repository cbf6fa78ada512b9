// SPDX-License-Identifier: Apache-2.0
/** What the controllers go by, from the ControllersConfiguration. Layer: controllers (pure). */
import { isObject } from '#lib/base/object.ts'
import type { Rejected } from '#lib/base/result.ts'
import { FieldError } from '#lib/kube/parse/fields.ts'
import { controllersConfigurationSpec } from '#lib/kube/schema/controllers-configuration.ts'
import type { LogLevel } from '#lib/obs/log.ts'

type Spec = ReturnType<typeof controllersConfigurationSpec.read>
type NodeSpec = NonNullable<NonNullable<Spec['controllers']>['node']>
type Raw = Readonly<Record<string, unknown>>

export type HostEndpointTemplate = NonNullable<NodeSpec['hostEndpoint']>['templates'][number]

export interface HostEndpointSettings {
  readonly autoCreate: boolean
  /** each node has one for all its interfaces */
  readonly createDefault: boolean
  readonly templates: readonly HostEndpointTemplate[]
  /** they have the labels of their nodes */
  readonly syncLabels: boolean
}

export interface Settings {
  readonly hostEndpoints: HostEndpointSettings
  /** undefined: what is held is never taken back */
  readonly leakGraceMs: number | undefined
  /** how often everything is compared, whatever has changed */
  readonly reconcileMs: number
  readonly logLevel: LogLevel
  /** the spec with every default */
  readonly running: Raw
}

export type SettingsRead =
  | { readonly kind: 'accepted'; readonly settings: Settings }
  | { readonly kind: 'refused'; readonly rejected: readonly Pick<Rejected, 'path' | 'reason'>[] }

const NODE = { reconcilerPeriod: '5m', syncLabels: 'Enabled', leakGracePeriod: '15m' }
const HOST_ENDPOINT = { autoCreate: 'Disabled', createDefaultHostEndpoint: 'Enabled', templates: [] }
const LEVELS = { Debug: 'debug', Info: 'info', Warning: 'warn', Error: 'error', Fatal: 'fatal' } as const
/** More often would be nothing but work. */
const LEAST_PERIOD_MS = 1000

/** Of the spec of an object, or of none. */
export function readSettings(spec: unknown): SettingsRead {
  const running = withDefaults(spec)
  try {
    const read = controllersConfigurationSpec.read(running)
    const rejected = unsupported(read)
    return rejected.length > 0 ? { kind: 'refused', rejected } : { kind: 'accepted', settings: settingsOf(read, running) }
  } catch (thrown) {
    if (!(thrown instanceof FieldError)) throw thrown
    const { path, reason } = thrown.under('spec')
    return { kind: 'refused', rejected: [{ path, reason }] }
  }
}

/** Of an empty spec. */
export function defaultSettings(): Settings {
  const running = withDefaults({})
  return settingsOf(controllersConfigurationSpec.read(running), running)
}

function withDefaults(spec: unknown): Raw {
  const raw = isObject(spec) ? spec : {}
  const part = (of: Raw, name: string): Raw => (isObject(of[name]) ? of[name] : {})
  const controllers = part(raw, 'controllers')
  const node = part(controllers, 'node')
  const hostEndpoint = { ...HOST_ENDPOINT, ...part(node, 'hostEndpoint') }
  return { logSeverityScreen: 'Info', ...raw, controllers: { ...controllers, node: { ...NODE, ...node, hostEndpoint } } }
}

function settingsOf({ logSeverityScreen = 'Info', controllers }: Spec, running: Raw): Settings {
  const { hostEndpoint, syncLabels, leakGracePeriod = 0, reconcilerPeriod = 0 } = controllers?.node ?? {}
  return {
    hostEndpoints: {
      autoCreate: hostEndpoint?.autoCreate === 'Enabled',
      createDefault: hostEndpoint?.createDefaultHostEndpoint === 'Enabled',
      templates: hostEndpoint?.templates ?? [],
      syncLabels: syncLabels === 'Enabled',
    },
    leakGraceMs: leakGracePeriod === 0 ? undefined : leakGracePeriod,
    reconcileMs: Math.max(reconcilerPeriod, LEAST_PERIOD_MS),
    logLevel: LEVELS[logSeverityScreen],
    running,
  }
}

/** What there is not, and cannot be left out without a word. */
function unsupported({ healthChecks, prometheusMetricsPort = 0, controllers }: Spec): readonly Pick<Rejected, 'path' | 'reason'>[] {
  const { policy, namespace, serviceAccount, workloadEndpoint, loadBalancer } = controllers ?? {}
  const READ = 'there is no such controller: agents read these objects themselves'
  const asked: readonly (readonly [boolean, string, string])[] = [
    [healthChecks === 'Disabled', 'healthChecks', 'must be Enabled: the probes of the pod ask'],
    [prometheusMetricsPort !== 0, 'prometheusMetricsPort', 'must be 0: the port is an option of the program, --metrics-port'],
    [policy !== undefined, 'controllers.policy', READ],
    [namespace !== undefined, 'controllers.namespace', READ],
    [serviceAccount !== undefined, 'controllers.serviceAccount', READ],
    [workloadEndpoint !== undefined, 'controllers.workloadEndpoint', READ],
    [loadBalancer !== undefined, 'controllers.loadBalancer', 'this version gives services no addresses'],
  ]
  return asked.flatMap(([isAsked, path, reason]) => (isAsked ? [{ path: `spec.${path}`, reason }] : []))
}
