// SPDX-License-Identifier: Apache-2.0
/** The service "web" compiled on node n1, as lines. Layer: test. */
import { atOnce } from '#lib/base/async/slices.ts'
import { parseAddr, parsePort } from '#lib/base/ip.ts'
import type { EndpointSlice } from '#lib/model/endpoint-slice.ts'
import { compileService } from '#agent/compile/services/compile-service.ts'
import type { ServiceContext } from '#agent/compile/services/compile-service.ts'
import { model, service } from '../../support/build.ts'
import type { Manifest, ServiceSpec } from '../../support/build.ts'
import { showRows } from '../../support/show.ts'

const nodes = new Map([
  ['n2', { v4: '192.168.0.2', v6: 'fd01::2' }],
  ['n3', { v4: '192.168.0.3', v6: undefined }],
])
export const context: ServiceContext = {
  node: 'n1',
  zone: 'east',
  selfAddresses: [parseAddr('192.168.0.1'), parseAddr('fd01::1')],
  mode: 'BPF',
  tunnelPort: parsePort(4789),
  selection: 'Random',
  excluded: [],
  most: undefined,
  otherNode: (name: string, v4: boolean) => {
    const text = v4 ? nodes.get(name)?.v4 : nodes.get(name)?.v6
    return text === undefined ? undefined : parseAddr(text)
  },
}

/** All rows but those that only say that an address is the service's. */
export function compile(of: ServiceSpec, ...slices: readonly Manifest[]): string[] {
  return compileAs(context, of, ...slices).filter((line) => !/ service( external)?$/.test(line))
}

export function compileAs(here: ServiceContext, of: ServiceSpec, ...slices: readonly Manifest[]): string[] {
  const web = model(service('web', of))
  const models = slices.map(model).filter((object): object is EndpointSlice => object.kind === 'EndpointSlice')
  if (web.kind !== 'Service') throw new Error('not a service')
  return showRows(atOnce(compileService(web, models, here)).rows)
}
