// SPDX-License-Identifier: Apache-2.0
/** What administrators change of pods, whichever they are. Layer: upgrade (pure). */
import { textOf } from '#lib/base/object.ts'
import { carried, carriedElement, kept, left, refused } from '../edit.ts'
import { mirrorOf } from '../image.ts'
import { amountOf } from '../quantity.ts'
import { rule, unlessGone, type Decide, type EditRule } from '../rule.ts'

/** Overrides of an Installation. */
export type Overrides = 'nodePods' | 'controllerPods'

/** The last step of the edit is the name. */
function named(...path: readonly string[]): Decide {
  return ({ steps, mine }) => carried('installation', [...path, steps.at(-1) ?? ''], mine)
}

/** What programs of this version ask for: a limit below it was for another program. */
export const LEAST_MEMORY: Readonly<Record<Overrides, string>> = { nodePods: '200Mi', controllerPods: '110Mi' }

function resources(pods: Overrides): Decide {
  return unlessGone(left('this version says what its pods ask for'), (edit, around) => {
    const [group = '', name] = edit.steps.slice(-2)
    const least = LEAST_MEMORY[pods]
    const isSmall = group === 'limits' && name === 'memory' && (amountOf(edit.mine) ?? Infinity) < (amountOf(least) ?? 0)
    return isSmall
      ? refused(`it is a limit for another program: that of this version asks for ${least}`, 'Raise the limit, or take it away.')
      : named(pods, 'resources', group)(edit, around)
  })
}

function toleration(pods: Overrides): Decide {
  return ({ steps, base, mine }) => {
    if (base === undefined && steps.at(-1)?.startsWith('[') === true) return carriedElement('installation', [pods, 'tolerations'], mine)
    return pods === 'controllerPods'
      ? left('controllers tolerate what clusters keep for their own')
      : refused(
          'agents run on every node, whatever its taints',
          'Put the toleration back; spec.nodePods.nodeSelector keeps agents from nodes.',
        )
  }
}

/** Where its copy is, for each container by itself: they must agree. */
export const mirrored: Decide = ({ base, mine }) => {
  const [own, copy] = [textOf(base), textOf(mine)]
  const mirror = mirrorOf(copy, own)
  if (mirror === undefined) return refused(`${copy} is not a copy of ${own}`, 'Use an image of this version, from a registry of yours.')
  const { registry, imagePath } = mirror
  return carried('installation', [], { ...(registry === '' ? {} : { registry }), ...(imagePath === '' ? {} : { imagePath }) })
}

const PROBES = ['livenessProbe', 'readinessProbe', 'startupProbe', 'lifecycle'].map((field) => `container.${field}*`)

export function podRules(pods: Overrides): readonly EditRule[] {
  const gone = left('pods of this version do not have it')
  return [
    rule('container.resources.*', resources(pods)),
    rule('pod.tolerations[*]*', toleration(pods)),
    rule(
      'pod.nodeSelector.*',
      unlessGone(refused('pods of this version run on Linux alone', 'Put the label back.'), named(pods, 'nodeSelector')),
    ),
    rule('spec.template.metadata.annotations.*', unlessGone(gone, named(pods, 'annotations'))),
    rule(
      'pod.imagePullSecrets[*]',
      unlessGone(gone, ({ steps }) => carriedElement('installation', ['imagePullSecrets'], nameIn(steps))),
    ),
    rule('container.image', mirrored),
    rule(
      ['pod.affinity*', 'pod.topologySpreadConstraints*'],
      unlessGone(gone, () => refused('an Installation has no affinity of pods', `Use labels of nodes, and spec.${pods}.nodeSelector.`)),
    ),
    rule('pod.priorityClassName', refused('pods of this version keep the priority that the cluster needs of them', 'Put the class back.')),
    rule(
      'spec.template.metadata.labels.*',
      unlessGone(gone, () => refused('an Installation has no labels of pods', 'Select pods by app.kubernetes.io/name.')),
    ),
    rule(PROBES, left("probes are those of this version's program")),
    rule(['container.securityContext*', 'pod.securityContext*'], left('rights are those that this version needs')),
    rule(
      ['pod.terminationGracePeriodSeconds', 'spec.minReadySeconds', 'spec.revisionHistoryLimit', 'spec.progressDeadlineSeconds'],
      left('this version says how its pods begin and end'),
    ),
    rule('pod.containers[*].imagePullPolicy', left('images of this version are pulled where they are not there')),
  ]
}

function nameIn(steps: readonly string[]): object {
  return { name: (steps.at(-1) ?? '').slice(1, -1) }
}

/** Of a ServiceAccount. */
export const accountSecret: Decide = ({ steps }) => carriedElement('installation', ['imagePullSecrets'], nameIn(steps))

/** Of DaemonSets: how their pods come to be of another version. */
export const rollRules: readonly EditRule[] = [
  rule(
    'spec.updateStrategy.rollingUpdate.maxUnavailable',
    unlessGone(left('nodes change one after the other'), ({ mine }) =>
      carried('installation', ['nodeUpdateStrategy', 'maxUnavailable'], mine),
    ),
  ),
  rule('spec.updateStrategy.rollingUpdate.maxSurge', left('no second agent can run on a node: both have its network')),
  rule('spec.updateStrategy.type', refused('nodes are changed by a rolling update', 'Set it to RollingUpdate.')),
]

/** Of every object: names that this version has as well, with what others have written there. */
export const metadataRules: readonly EditRule[] = [
  rule(
    'metadata.labels.addonmanager.kubernetes.io/*',
    refused('an addon manager of the cluster puts its manifest back', 'Have the addon manager let the object go.'),
  ),
  rule('metadata.*', kept('the object, where it is the same in this version: an apply leaves what it does not say')),
]
