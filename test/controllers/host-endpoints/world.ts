// SPDX-License-Identifier: Apache-2.0
/** A cluster in memory as automatic host endpoints see it: nodes, what agents say, host endpoints. Layer: test. */
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { endpointChanges, type Changes } from '#controllers/host-endpoints/changes.ts'
import { desiredEndpoints, type DesiredEndpoints } from '#controllers/host-endpoints/desired.ts'
import { nodeFacts } from '#controllers/host-endpoints/node-facts.ts'
import { readSettings } from '#controllers/config/settings.ts'

export interface NodeWords {
  readonly labels?: Readonly<Record<string, string>>
  readonly addresses?: readonly (readonly [type: string, address: string])[]
  readonly interfaces?: Readonly<Record<string, readonly string[]>>
}

export class World {
  readonly nodes = new Map<string, ApiObject>()
  readonly networks = new Map<string, ApiObject>()
  readonly endpoints = new Map<string, ApiObject>()
  hostEndpoint: object = {}
  syncLabels = 'Enabled'

  /** A Node with its agent's NodeNetwork; `isOld`: the agent does not know interfaces. */
  put(name: string, { labels = {}, addresses = [], interfaces = {}, isOld = false }: NodeWords & { readonly isOld?: boolean }): void {
    const uid = `uid-${name}`
    const status = { addresses: addresses.map(([type, address]) => ({ type, address })) }
    this.nodes.set(name, asApiObject({ apiVersion: 'v1', kind: 'Node', metadata: { name, uid, labels }, status }))
    this.say(name, isOld ? {} : { interfaces }, uid)
  }

  /** What the agent says, of a Node or of none. */
  say(name: string, { labels, addresses, interfaces }: NodeWords, owner?: string): void {
    const ownerReferences = owner === undefined ? [] : [{ apiVersion: 'v1', kind: 'Node', name, uid: owner }]
    const spec = {
      ...(labels && { labels }),
      ...(addresses && { addresses: addresses.map(([, address]) => address) }),
      ...(interfaces && { interfaces: Object.entries(interfaces).map(([one, at]) => ({ name: one, addresses: at })) }),
    }
    this.networks.set(name, asApiObject({ apiVersion: 'netplane.io/v3', kind: 'NodeNetwork', metadata: { name, ownerReferences }, spec }))
  }

  remove(name: string): void {
    this.nodes.delete(name)
    this.networks.delete(name)
  }

  /** What the controllers do, until nothing is left to do: twice would be an error of theirs. */
  sync(): Changes & DesiredEndpoints {
    const node = { syncLabels: this.syncLabels, hostEndpoint: this.hostEndpoint }
    const read = readSettings({ controllers: { node } })
    if (read.kind !== 'accepted') throw new Error(JSON.stringify(read.rejected))
    const { hostEndpoints } = read.settings
    const desired = desiredEndpoints(nodeFacts(this.nodes.values(), this.networks.values()), hostEndpoints)
    const done = endpointChanges(desired, this.endpoints.values())
    for (const { verb, object } of done.changes) {
      const { name } = object.metadata
      if (verb === 'delete') this.endpoints.delete(name)
      else this.endpoints.set(name, object)
    }
    const again = endpointChanges(desired, this.endpoints.values())
    if (again.changes.length > 0) throw new Error(`not at rest: ${JSON.stringify(again.changes)}`)
    return { ...done, ...desired }
  }
}
