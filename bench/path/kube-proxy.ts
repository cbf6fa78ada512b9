// SPDX-License-Identifier: Apache-2.0
/** Services without us: the real kube-proxy on every node, which gets the same objects from a real API server.
 * Layer: bench. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mapLimited } from '#lib/base/async/map-limited.ts'
import type { Lab } from '../../lab/lab.ts'
import { ControlPlane } from '../../testkit/kubernetes/control-plane.ts'
import { startKubeProxy, stopKubeProxy } from '../../testkit/kubernetes/kube-proxy/process.ts'
import type { ProxyMode } from '../../testkit/kubernetes/kube-proxy/process.ts'
import { POD_CIDR, SERVICE_CIDR, clusterObjects, far, near } from './manifests.ts'

/** Its rules are what is measured, and they stay: nothing of Kubernetes runs beside the measurement. */
export function serveByKubeProxy(options: { readonly mode: ProxyMode; readonly programs: string }): (lab: Lab) => Promise<void> {
  return async (lab) => {
    const folder = mkdtempSync(join(tmpdir(), 'netplane-kube-'))
    await using stack = new AsyncDisposableStack()
    stack.defer(() => rmSync(folder, { recursive: true }))
    const { programs, mode } = options
    const plane = stack.use(await ControlPlane.start({ lab, programs, folder, serviceCidrs: [SERVICE_CIDR] }))
    await plane.create(clusterObjects())
    const until = [near, far].map((service) => service.clusterIp)
    const common = { lab, programs, mode, folder, until, kubeconfig: plane.kubeconfig, podCidrs: [POD_CIDR] }
    const proxies = await mapLimited(lab.topology.nodes, 2, ({ name }) => startKubeProxy({ ...common, node: name }))
    await Promise.all(proxies.map(stopKubeProxy))
  }
}
