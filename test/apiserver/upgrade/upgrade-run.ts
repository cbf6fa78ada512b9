// SPDX-License-Identifier: Apache-2.0
/** `upgrade run` as a person types it, with the programs of this version that its pods would run. Layer: test. */
import type { Named } from '#lib/api/resource.ts'
import { listAt, textAt } from '../../../lab/raw.ts'
import { isOperators, type MatrixForm } from '../../upgrade/found/installed.ts'
import { soon } from '../controllers/controllers.ts'
import type { Ended } from '../run.ts'
import type { OldCluster } from './old-cluster.ts'
import { agentsNamespace, controllersOf, OPERATOR } from './plant-forms.ts'

export const WHOLE_MS = 240_000
export const IMAGE = 'netplane:3.31.5'

/** To its end. */
export async function upgradeRun(old: OldCluster, form: MatrixForm): Promise<Ended> {
  const started = startApplied(old, form).catch(() => undefined)
  const ended = await old.netplanectl('upgrade', 'run', '--timeout', '60')
  if (ended.code === 0) await started
  return ended
}

/** As their pods would be, with the flags that those have: once a Deployment is of this version. */
async function startApplied(old: OldCluster, form: MatrixForm): Promise<void> {
  if (isOperators(form)) {
    await applied(old, OPERATOR)
    old.runOperator()
  }
  const controllers = await applied(old, controllersOf(form))
  const flags = listAt(controllers, 'args').map((flag) => String(flag).replace('$(NAMESPACE)', agentsNamespace(form)))
  old.runControllers(...flags.filter((flag) => !flag.startsWith('--health-port')))
}

/** The container of its pods. */
async function applied({ client }: OldCluster, deployment: Named): Promise<unknown> {
  const container = async (): Promise<unknown> => listAt(await client.get(deployment), 'spec.template.spec.containers')[0]
  await soon(`${deployment.name} is of this version`, async () => textAt(await container(), 'image') === IMAGE, WHOLE_MS)
  return await container()
}
