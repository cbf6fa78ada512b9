// SPDX-License-Identifier: Apache-2.0
/** `admission`: what is stored is a backup, and the server refuses to change it: old programs would write where nothing
 * reads. Layer: upgrade. */
import { getOrNone, isAbsent } from '#lib/api/absent.ts'
import { isRefused } from '#lib/api/errors.ts'
import { asApiObject, namedOf, type ApiObject } from '#lib/api/resource.ts'
import { hasValues } from '#lib/base/deep-equal.ts'
import type { Step } from '../steps/step.ts'
import { STORED_API_VERSION } from '../stored/outcome.ts'
import { isStoredThere, STORED_INFORMATION } from './cluster-information.ts'
import { FIELD_MANAGER, waitFor, type StorageClient, type StorageOptions } from './options.ts'

const STEP = 'admission'
const GROUP = STORED_API_VERSION.split('/')[0] ?? ''

/** They delete what an owner had, also of this group. */
const COLLECTORS = ['system:serviceaccount:kube-system:generic-garbage-collector', 'system:kube-controller-manager']
/** What is stored in a namespace goes with it, or the namespace never would. */
const GOES_WITH_NAMESPACE = "request.operation == 'DELETE' && namespaceObject != null && has(namespaceObject.metadata.deletionTimestamp)"

/** A policy, and that it is in force. */
export function storedPolicy(version: string): readonly ApiObject[] {
  const apiVersion = 'admissionregistration.k8s.io/v1'
  const metadata = { name: 'netplane-upgrade-stored' }
  const operations = ['CREATE', 'UPDATE', 'DELETE']
  const spec = {
    failurePolicy: 'Fail',
    matchConstraints: { resourceRules: [{ apiGroups: [GROUP], apiVersions: ['*'], resources: ['*'], operations }] },
    matchConditions: [{ name: 'no-collector', expression: `!(request.userInfo.username in ${JSON.stringify(COLLECTORS)})` }],
    validations: [{ expression: GOES_WITH_NAMESPACE, message: messageOf(version), reason: 'Forbidden' }],
  }
  return [
    { apiVersion, kind: 'ValidatingAdmissionPolicy', metadata, spec },
    {
      apiVersion,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata,
      spec: { policyName: metadata.name, validationActions: ['Deny'] },
    },
  ].map(asApiObject)
}

function messageOf(version: string): string {
  return `objects of ${GROUP} are a backup and are not in use: write netplane.io/v3 with netplanectl v${version} or with kubectl`
}

export function admissionStep(options: StorageOptions): Step {
  const { client, version } = options
  const wanted = storedPolicy(version)
  const missing = async (signal: AbortSignal): Promise<string | undefined> => {
    if (!(await isStoredThere(client, signal))) return undefined
    for (const object of wanted)
      if (!hasValues((await getOrNone(client, namedOf(object), { signal }))?.['spec'], object['spec'])) return `${object.kind}: not there`
    return (await isRefusedNow(client, version, signal)) ? undefined : `the server still lets objects of ${GROUP} be changed`
  }
  return {
    name: STEP,
    about: `has the server refuse changes of ${GROUP} objects, which stay as a backup until --finish`,
    commands: [],
    look: async (signal) => ({ isDone: (await missing(signal)) === undefined, problems: [] }),
    run: async (signal) => {
      for (const object of wanted) await client.apply(object, { fieldManager: FIELD_MANAGER, force: true, signal })
      await waitFor(options, { step: STEP, signal, missing: () => missing(signal) })
    },
  }
}

/** By trying, which changes nothing. What is not there any more cannot be changed either. */
async function isRefusedNow(client: StorageClient, version: string, signal: AbortSignal): Promise<boolean> {
  try {
    await client.patch(
      STORED_INFORMATION,
      { metadata: { annotations: { 'upgrade.netplane.io/tried': 'true' } } },
      { type: 'merge', dryRun: true, signal },
    )
    return false
  } catch (thrown) {
    if (isAbsent(thrown)) return true
    if (isRefused(thrown, 'Forbidden') && thrown.said.includes(messageOf(version))) return true
    throw thrown
  }
}

export async function removePolicy({ client, version }: StorageOptions, signal: AbortSignal): Promise<void> {
  for (const object of storedPolicy(version).toReversed())
    try {
      await client.delete(namedOf(object), { signal })
    } catch (thrown) {
      if (!isRefused(thrown, 'NotFound')) throw thrown
    }
}

/** The server obeys a policy for a moment after it is gone. */
export async function waitForWrites(options: StorageOptions, signal: AbortSignal): Promise<void> {
  const missing = async (): Promise<string | undefined> => {
    if ((await getOrNone(options.client, STORED_INFORMATION, { signal })) === undefined) return undefined
    return (await isRefusedNow(options.client, options.version, signal)) ? `the server still refuses changes of ${GROUP}` : undefined
  }
  await waitFor(options, { step: 'finish', signal, missing })
}
