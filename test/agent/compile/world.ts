// SPDX-License-Identifier: Apache-2.0
/** A store and a compiler that follows it, and a cluster to put there. Layer: test. */
import { atOnce } from '#lib/base/async/slices.ts'
import { rejectedText } from '#lib/base/result.ts'
import type { Store } from '#lib/store/store.ts'
import { Compiler } from '#agent/compile/compile.ts'
import type { CompileInput } from '#agent/compile/compile.ts'
import type { DesiredChange } from '#agent/compile/desired.ts'
import type { CompileSettings } from '#agent/compile/settings.ts'
import { defaultConfig } from '#agent/config/config.ts'
import { model, node, pod, service, slice, storeOf } from '../../support/build.ts'
import type { Manifest } from '../../support/build.ts'

/** The defaults, but for ports that policy never cuts: they would be in every answer. */
const settings: CompileSettings = {
  ...defaultConfig.compile,
  nodes: { ...defaultConfig.compile.nodes, failsafes: { inbound: [], outbound: [] } },
}

export class World {
  readonly store: Store
  readonly compiler = new Compiler('n1')
  input: CompileInput

  constructor(...manifests: readonly Manifest[]) {
    this.store = storeOf(manifests)
    this.input = { snapshot: this.store.snapshot, settings }
  }

  put(...manifests: readonly Manifest[]): void {
    this.store.sink('test').apply(manifests.map((manifest) => ({ kind: 'upsert', object: model(manifest) })))
  }

  drop(...manifests: readonly Manifest[]): void {
    this.store.sink('test').apply(
      manifests.map((manifest) => {
        const { kind, namespace, name } = model(manifest)
        return { kind: 'delete', ref: { kind, namespace, name } }
      }),
    )
  }

  compile(): DesiredChange {
    return atOnce(this.compiler.compileChanges(this.input, this.store.takeChanges()))
  }

  /** Owners of what comes out, and whether the node part does. */
  owners(): string[] {
    const change = this.compile()
    return [...change.fragments.map(({ owner }) => owner).sort(), ...(change.node === undefined ? [] : ['node'])]
  }

  get conflicts(): string[] {
    return atOnce(this.compiler.conflicts()).map(({ rejected, inPart }) => `${rejectedText(rejected)}${inPart === true ? ', in part' : ''}`)
  }
}

/** Two nodes, two services and a pod on each node. */
export const cluster = [
  node('n1', { addresses: ['192.168.0.1'], podCIDRs: ['10.0.1.0/24'] }),
  node('n2', { addresses: ['192.168.0.2'], podCIDRs: ['10.0.2.0/24'] }),
  service('web'),
  slice('web-1', {
    endpoints: [
      { addr: '10.0.1.1', node: 'n1' },
      { addr: '10.0.2.1', node: 'n2' },
    ],
  }),
  service('other', { clusterIPs: ['10.96.0.2'] }),
  pod('a', { node: 'n1', ips: ['10.0.1.1'] }),
  pod('b', { node: 'n2', ips: ['10.0.2.1'] }),
]
