// SPDX-License-Identifier: Apache-2.0
/** The chapters in their order. Layer: demo. */
import { cleanup } from './chapters/cleanup.ts'
import { clusterIp } from './chapters/cluster-ip.ts'
import { endpoints } from './chapters/endpoints.ts'
import { mtu } from './chapters/mtu.ts'
import { nodePort } from './chapters/node-port.ts'
import { restart } from './chapters/restart.ts'
import type { Piece } from './report.ts'
import type { Stage } from './stage.ts'

export interface Chapter {
  readonly title: string
  /** Throws when it cannot go on; the next chapter runs all the same. */
  tell(stage: Stage): AsyncIterable<Piece>
}

export const story: readonly Chapter[] = [
  { title: 'A client asks the node that has no pod of the service: NodePort, IPv4', tell: (stage) => nodePort(stage, 4) },
  { title: 'The same over IPv6', tell: (stage) => nodePort(stage, 6) },
  { title: 'Pods and nodes ask the service by its cluster address', tell: clusterIp },
  { title: 'Ping, and packets as large as they come', tell: mtu },
  { title: 'The service moves to another pod while it is in use', tell: endpoints },
  { title: 'Both agents are killed and started again while traffic flows', tell: restart },
  { title: 'Netplane is taken off the nodes', tell: cleanup },
]
