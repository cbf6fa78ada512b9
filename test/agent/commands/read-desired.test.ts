// SPDX-License-Identifier: Apache-2.0
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { formatCidr } from '#lib/base/ip.ts'
import { readDesired } from '#agent/commands/read-desired.ts'
import type { CniOptions } from '#agent/pods/cni-options.ts'
import { node, nodeNetwork } from '../../support/build.ts'

let directory = ''
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'netplane-once-'))
  const items = [
    node('n1', { addresses: ['192.168.0.1'], podCIDRs: ['10.1.0.0/24'] }),
    nodeNetwork('n2', { addresses: ['192.168.9.2'], podCIDRs: ['10.2.0.0/24'] }),
  ]
  writeFileSync(join(directory, 'nodes.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
})
afterAll(() => {
  rmSync(directory, { recursive: true })
})

async function routes(chained?: boolean): Promise<readonly string[]> {
  const cni: CniOptions = {
    confDir: '/x',
    binDir: '/x',
    socket: '/x',
    local: false,
    chained: chained === true,
    hostPorts: true,
    mtu: undefined,
  }
  const { desired } = await readDesired({
    node: 'n1',
    origin: { kind: 'directory', directory },
    ...(chained === undefined ? {} : { cni }),
  })
  return desired?.node?.routes.map(({ cidr, overlay }) => `${formatCidr(cidr)}${overlay ? ' in the tunnel' : ''}`) ?? []
}

test('the desired state depends on which plugin serves the pods, as that of a running agent does', async () => {
  expect(await routes()).toEqual(['10.2.0.0/24'])
  expect(await routes(false)).toEqual(['10.2.0.0/24 in the tunnel'])
  expect(await routes(true)).toEqual([])
})
