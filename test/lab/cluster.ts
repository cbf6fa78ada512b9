// SPDX-License-Identifier: Apache-2.0
/** Small clusters as manifests, for the lab's tests. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export function node(name: string, ...addresses: string[]): object {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name },
    status: { addresses: addresses.map((address) => ({ type: 'InternalIP', address })) },
  }
}

export function pod(key: string, nodeName: string, ...ips: string[]): object {
  const [namespace, name] = key.split('/')
  const ports = ['TCP', 'UDP'].map((protocol) => ({ containerPort: 8080, protocol }))
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace },
    spec: { nodeName, hostNetwork: ips.length === 0, containers: [{ name: 'main', ports }] },
    status: { phase: 'Running', podIPs: ips.map((ip) => ({ ip })) },
  }
}

/** Two nodes, two pods on the first, one on the second; both families. */
export const TWO_NODES = [
  node('a', '172.31.7.2', 'fd00:31:7::2'),
  node('b', '172.31.7.3', 'fd00:31:7::3'),
  pod('default/one', 'a', '10.31.0.1', 'fd00:31::1'),
  pod('default/two', 'a', '10.31.0.2', 'fd00:31::2'),
  pod('shop/three', 'b', '10.31.1.3', 'fd00:31:1::3'),
]

/** A directory of manifests that goes with its scope. */
export class Manifests implements Disposable {
  readonly dir = mkdtempSync(join(tmpdir(), 'netplane-lab-test-'))

  constructor(objects: readonly object[]) {
    this.write(objects)
  }

  /** Replaces all of them. */
  write(objects: readonly object[]): void {
    writeFileSync(join(this.dir, 'all.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
  }

  [Symbol.dispose](): void {
    rmSync(this.dir, { recursive: true, force: true })
  }
}
