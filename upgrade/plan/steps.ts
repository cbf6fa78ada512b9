// SPDX-License-Identifier: Apache-2.0
/** A plan → the steps that it takes, in their order. Layer: upgrade. */
import type { ApiClient } from '#lib/api/client.ts'
import { namedOf, type ApiObject } from '#lib/api/resource.ts'
import type { Clock } from '#lib/base/clock.ts'
import { fieldsOf, textOf } from '#lib/base/object.ts'
import { imageOf } from '#lib/render/image.ts'
import { NODE } from '#lib/render/input.ts'
import { OPERATOR } from '#lib/render/operator-pod.ts'
import { flannelContainer } from '../flannel/split.ts'
import { flannelStep } from '../flannel/step.ts'
import type { UpgradeFacts } from '../found/facts.ts'
import type { Found } from '../found/found.ts'
import { agentsConfigMap, installationIn } from '../found/variant.ts'
import { objectsOf } from '../found/objects.ts'
import { definitionsStep, operatorDefinitionsStep } from '../storage/definitions.ts'
import { FIELD_MANAGER, type StorageOptions } from '../storage/options.ts'
import { storageSteps } from '../storage/steps.ts'
import { adoptOf, type AdoptInput } from '../steps/adopt.ts'
import { chartStep } from '../steps/chart.ts'
import { keepInstallationStep, putInstallationStep } from '../steps/installation.ts'
import { operatorLike } from '../steps/operator-pods.ts'
import { pruneOf } from '../steps/prune.ts'
import { rollOf } from '../steps/roll.ts'
import { settingsStep } from '../steps/settings.ts'
import type { Step } from '../steps/step.ts'
import { stopOperatorStep } from '../steps/stop-operator.ts'
import { verifyOf } from '../steps/verify.ts'
import { workloadImages } from '../steps/workload-image.ts'
import { obsoleteObjects } from './obsolete.ts'
import type { UpgradePlan } from './plan.ts'
import { targetObjects } from './target.ts'

export interface StepsInput {
  readonly client: ApiClient
  readonly clock: Clock
  readonly facts: UpgradeFacts
  readonly plan: UpgradePlan
  /** by which the operator knows its own objects */
  readonly operator: Pick<AdoptInput, 'manager' | 'labels'>
  /** of this version: folder, archive or reference */
  readonly chart: string
  readonly kubeconfig: string | undefined
  /** for what rolls to be everywhere */
  readonly timeoutMs: number
}

/** None where it is not known what is installed. */
export function upgradeSteps(input: StepsInput): readonly Step[] {
  const { client, clock, plan } = input
  const { found, stored, edits, version } = plan
  if (found === undefined) return []
  const options: StorageOptions = { client, clock, ...placeOf(found), version }
  const withOperator = found.method !== 'manifest'
  const installation = { client, carried: edits.installation }
  const target = targetObjects({ ...input, found, carried: withOperator ? {} : edits.installation, version })
  return [
    ...(withOperator && stored !== undefined ? stopSteps(input) : []),
    ...(stored === undefined ? [definitionsStep(options)] : storageSteps(options, stored)),
    // what older versions say of it is no longer seen once their definition is another
    settingsStep({ client, manager: FIELD_MANAGER, ...edits }),
    ...(withOperator
      ? [
          keepInstallationStep(installation),
          operatorDefinitionsStep(options),
          putInstallationStep(installation),
          ...operatorSteps(input, found, target),
        ]
      : manifestSteps(input, found, target)),
    verifyStep(input),
    // agents before this version need it as long as they run
    pruneStep(input, found, target),
  ]
}

function manifestSteps({ client, clock, facts, plan, timeoutMs }: StepsInput, found: Found, target: readonly ApiObject[]): readonly Step[] {
  const { daemonSet, namespace } = found
  const configMap = objectsOf(facts, '', 'ConfigMap').find(
    ({ metadata }) => metadata.namespace === namespace && metadata.name === agentsConfigMap(daemonSet),
  )
  const flannel =
    flannelContainer(daemonSet) !== undefined && configMap !== undefined ? [flannelStep({ client, clock, daemonSet, configMap })] : []
  return [
    ...flannel,
    {
      name: 'roll',
      about: `rolls DaemonSet ${namespace}/${daemonSet.metadata.name}, then the controllers, to v${plan.version} (${imagesText(target)}), with the edits that are carried`,
      commands: [
        `kubectl apply --server-side --force-conflicts -f ${found.target}.yaml`,
        `kubectl -n ${namespace} rollout status daemonset/${daemonSet.metadata.name}`,
      ],
      images: imagesOf(target),
      ...rollOf({ client, clock, manager: FIELD_MANAGER, objects: target, timeoutMs }),
    },
  ]
}

export function operatorIn(facts: UpgradeFacts): ApiObject | undefined {
  return objectsOf(facts, 'apps', 'Deployment').find(({ metadata }) => metadata.name === OPERATOR)
}

function stopSteps({ client, clock, facts, plan: { version } }: StepsInput): readonly Step[] {
  const namespace = operatorIn(facts)?.metadata.namespace
  return namespace === undefined ? [] : [stopOperatorStep({ client, clock, namespace, version })]
}

function operatorSteps(input: StepsInput, found: Found, target: readonly ApiObject[]): readonly Step[] {
  const { client, clock, facts, plan, chart, kubeconfig, timeoutMs } = input
  const { version } = plan
  const operator = operatorIn(facts)
  const adopt: Step = {
    name: 'adopt',
    about: `makes what the operator before has written the operator's of v${version}`,
    commands: [],
    ...adoptOf({ ...input.operator, client, names: target.map(namedOf) }),
  }
  // a run that was cut off may have taken it away: its values are kept where the plan does not look
  const objects = operator?.['spec'] === undefined ? [] : operatorLike(operator, version)
  const images = [...new Set([...imagesOf(objects), agentImage(input)])]
  if (found.release !== undefined) {
    const agents = agentImage(input)
    return [adopt, { ...chartStep({ client, clock, release: found.release, chart, version, agents, kubeconfig, timeoutMs }), images }]
  }
  const roll: Step = {
    name: 'operator',
    about: `applies the operator of v${version} (${imagesText(objects)}), with what was chosen for its pods; its agents are ${agentImage(input)}`,
    commands: ['kubectl apply --server-side --force-conflicts -f netplane-operator.yaml'],
    images,
    ...rollOf({ client, clock, manager: FIELD_MANAGER, objects, timeoutMs }),
  }
  return [adopt, roll]
}

/** "registry.example.com/netplane:3.31.5" */
function imagesText(objects: readonly ApiObject[]): string {
  return imagesOf(objects).join(', ')
}

/** Each once. */
function imagesOf(objects: readonly ApiObject[]): readonly string[] {
  return [...new Set(objects.flatMap(workloadImages))]
}

/** As the operator will make it of its Installation. */
function agentImage({ facts, plan: { version, edits } }: StepsInput): string {
  const spec = { ...fieldsOf(installationIn(facts)?.['spec']), ...edits.installation }
  const [registry, imagePath] = [textOf(spec['registry']), textOf(spec['imagePath'])]
  const variant = spec['variant'] === 'NetplaneEnterprise' ? 'NetplaneEnterprise' : 'Netplane'
  return imageOf({ registry, imagePath, variant }, version)
}

/** Of the agents. */
export function placeOf({ namespace, environment, daemonSet }: Found): Pick<StorageOptions, 'namespace' | 'daemonSet' | 'environment'> {
  return { namespace, environment, daemonSet: daemonSet.metadata.name }
}

function pruneStep({ client, plan }: StepsInput, found: Found, target: readonly ApiObject[]): Step {
  const obsolete = obsoleteObjects(found, target)
  return {
    name: 'prune',
    about: `deletes what v${found.version} was made of and v${plan.version} is not`,
    commands: [],
    ...pruneOf({ client, obsolete }),
  }
}

function verifyStep({ client, clock, plan: { version }, timeoutMs }: StepsInput): Step {
  return {
    name: 'verify',
    about: `waits until every node runs v${version}, its pods are 2/2 ready, and the cluster says so`,
    commands: ['netplanectl version', `kubectl get pods -A -l app.kubernetes.io/name=${NODE}`],
    ...verifyOf({ client, clock, version, timeoutMs }),
  }
}
