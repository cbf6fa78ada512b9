// SPDX-License-Identifier: Apache-2.0
/** The same lists by the informers of client-node, as its users write them: what our source is measured beside.
 * Layer: bench. */
import { CoreV1Api, DiscoveryV1Api, KubeConfig, makeInformer } from '@kubernetes/client-node'
import { ownFacts, say } from './own-facts.ts'

const [port = '0'] = process.argv.slice(2)
const config = new KubeConfig()
config.loadFromClusterAndUser({ name: 'here', server: `http://127.0.0.1:${port}`, skipTLSVerify: true }, { name: 'nobody' })
const core = config.makeApiClient(CoreV1Api)
const discovery = config.makeApiClient(DiscoveryV1Api)
const services = makeInformer(config, '/api/v1/services', () => core.listServiceForAllNamespaces())
const slices = makeInformer(config, '/apis/discovery.k8s.io/v1/endpointslices', () => discovery.listEndpointSliceForAllNamespaces())
for (const informer of [services, slices])
  informer.on('error', (error) => {
    throw error
  })
// resolves when the list is in and the watch begun
await Promise.all([services.start(), slices.start()])
say({ ...ownFacts(), objects: services.list().length + slices.list().length })
process.exit()
