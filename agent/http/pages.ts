// SPDX-License-Identifier: Apache-2.0
/** Which of the agent's own pages are served, and where the settings want them. Layer: agent. */
import type { Pages } from '#lib/obs/http.ts'
import { defaultConfig, type Config, type Served } from '../config/config.ts'
import type { Listener } from './listeners.ts'
import type { AgentOptions } from '../run/options.ts'

/** What there is to serve, by the names that logs have. */
const NAMES = ['health', 'metrics', 'proxy-health'] as const
export type Listening = Readonly<Record<(typeof NAMES)[number], Listen>>

export interface Listen {
  /** undefined: every address */
  readonly host: string | undefined
  /** undefined: off */
  readonly port: number | undefined
}

/** undefined: there is nothing to serve yet */
export type PagesOf = Readonly<Record<(typeof NAMES)[number], Listener['pages'] | undefined>>

/** Flags go before the configuration. Until there is one, health is at its default place, and nothing is served to
 * other machines. */
export function listening(options: Pick<AgentOptions, 'healthPort' | 'metricsPort'>, config: Config | undefined): Listening {
  return {
    health: place(options.healthPort, (config ?? defaultConfig).health),
    metrics: place(options.metricsPort, (config ?? defaultConfig).prometheus),
    'proxy-health': { host: undefined, port: config?.proxyHealthPort === 0 ? undefined : config?.proxyHealthPort },
  }
}

function place(flag: number | undefined, served: Served): Listen {
  // Node.js would listen on ::1, where no client asks
  const host = served.host === 'localhost' ? '127.0.0.1' : served.host
  if (flag === undefined) return { host, port: served.enabled ? served.port : undefined }
  return { host, port: flag === 0 ? undefined : flag }
}

export function ownListeners(listening: Listening, pages: PagesOf): Map<string, Listener> {
  const wanted = new Map<string, Listener>()
  for (const name of NAMES) {
    const { host, port } = listening[name]
    const served = pages[name]
    if (port !== undefined && served !== undefined) wanted.set(name, { host, port, pages: served })
  }
  return wanted
}

/** /policy/rules: by number, as programs record it, which rule of which policy that is. For netplanectl. */
export function policyPages(ruleNames: () => ReadonlyMap<number, string>): Pages {
  return {
    '/policy/rules': () => ({ status: 200, type: 'application/json', body: `${JSON.stringify(Object.fromEntries(ruleNames()))}\n` }),
  }
}
