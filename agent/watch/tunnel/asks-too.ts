// SPDX-License-Identifier: Apache-2.0
/** Asks another node's agent, beside the tunnel, whether it runs and asks as this one does. Layer: agent. */
import { get } from 'node:http'
import { formatAddr } from '#lib/base/ip.ts'
import { PROBES_HEADER } from '../../http/proxy-health.ts'
import type { Peer } from './peers.ts'

const ANSWER_MS = 2000

/** `port`: where the peer serves `/livez` (bpfKubeProxyHealthzPort); 0: nowhere. */
export function asksToo({ address }: Peer, port: number): Promise<boolean> {
  if (port === 0) return Promise.resolve(false)
  return new Promise((resolve) => {
    const options = { host: formatAddr(address), port, path: '/livez', agent: false, timeout: ANSWER_MS }
    const asked = get(options, (answer) => {
      resolve(answer.headers[PROBES_HEADER] !== undefined)
      answer.destroy()
    })
    const over = (): void => {
      resolve(false)
      asked.destroy()
    }
    asked.on('timeout', over).on('error', over)
  })
}
