// SPDX-License-Identifier: Apache-2.0
/** `upgrade run` where an operator of an older version has installed the product: the operator of this version takes
 * over what that has made, with what its Installation says. Layer: test. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { getOrNone } from '#lib/api/absent.ts'
import type { Named } from '#lib/api/resource.ts'
import { listAt, numberAt, textAt } from '../../../lab/raw.ts'
import { ofMatrix } from '../../support/steady/matrix.ts'
import { OldCluster } from './old-cluster.ts'
import {
  agentsNamespace,
  agentsOf,
  EDITED_REQUESTS,
  EDITED_TOLERATIONS,
  INSTALLATION,
  METRICS_PORT,
  OPERATOR,
  plantForm,
} from './plant-forms.ts'
import { upgradeRun, WHOLE_MS } from './upgrade-run.ts'

const BUILD_MS = 30 * 60_000
/** The lock is waited for from the third second to the thirteenth. */
const LOCKED_MS = 7000
const FELIX: Named = { apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration', name: 'default' }
const AGENTS = agentsOf('operator')
const TYPHA: Named = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: agentsNamespace('operator'), name: 'netplane-typha' }

describe.each(ofMatrix<'operator' | 'chart'>(['operator', 'chart'], ['chart']))('by %s', (method) => {
  let cluster: OldCluster

  beforeAll(async () => {
    cluster = await OldCluster.start((old) => plantForm(old, '3.27', method))
  }, BUILD_MS)

  afterAll(async () => {
    await cluster[Symbol.asyncDispose]()
  })

  test(
    'the agents roll as the same object, with what the Installation says, and what is not needed goes',
    async () => {
      const { client } = cluster
      const { uid } = (await client.get(AGENTS)).metadata
      const { spec } = await client.get(INSTALLATION)
      expect(await cluster.killedAfter(LOCKED_MS, 'upgrade', 'run')).toBeNull()
      // what the operator before would go by, if it were started again
      expect((await client.get(INSTALLATION))['spec']).toEqual(spec)
      const early = await cluster.netplanectl('upgrade', 'run', '--finish')
      expect([early.code, early.output]).toEqual([1, expect.stringMatching(/stopped at finish:\n.*is not done, as .*import/)])
      const { code, output } = await upgradeRun(cluster, method)
      expect(output).toContain('The upgrade is done.')
      expect(code).toBe(0)
      const agents = await client.get(AGENTS)
      expect(listAt(await client.get(OPERATOR), 'spec.template.spec.tolerations')).toEqual(EDITED_TOLERATIONS)
      expect(agents.metadata.uid).toBe(uid)
      expect(listAt(agents, 'spec.template.spec.containers').map((one) => textAt(one, 'name'))).toEqual(['netplane-node', 'datastore'])
      expect(textAt(listAt(agents, 'spec.template.spec.containers')[0], 'resources.requests.cpu')).toBe(EDITED_REQUESTS.cpu)
      expect(await getOrNone(client, TYPHA)).toBeUndefined()
      expect(numberAt(await client.get(FELIX), 'spec.prometheusMetricsPort')).toBe(METRICS_PORT)
      expect(output).toContain('as they were')
      expect(textAt(await client.get(INSTALLATION), 'spec.netplaneNetwork.linuxDataplane')).toBe('Standard')
      const network = async (): Promise<unknown> =>
        listAt(await getOrNone(client, { ...INSTALLATION, kind: 'NetplaneStatus', name: 'network' }), 'status.conditions').find(
          (one) => textAt(one, 'type') === 'Available',
        )
      await expect.poll(network, { timeout: 60_000 }).toMatchObject({ status: 'True' })
    },
    WHOLE_MS,
  )

  test('another run finds nothing to do', async () => {
    const { output } = await cluster.netplanectl('upgrade', 'run', '--json')
    const { steps } = JSON.parse(output) as { steps: readonly { name: string; outcome: string }[] }
    expect(steps.filter(({ outcome }) => outcome !== 'before')).toEqual([])
  })
})
