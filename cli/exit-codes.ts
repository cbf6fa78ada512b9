// SPDX-License-Identifier: Apache-2.0
/** How commands end: the codes, and of each command what makes it fail. Layer: cli (pure). */
export const EXIT = { done: 0, failed: 1, usage: 2 } as const

const NO_MAPS = 'the maps cannot be read: nothing is pinned, no rights, or a map of a version that it does not know'
const NOT_WRITTEN = 'a file cannot be used, and then nothing is written; the cluster is locked or of another version; an object was refused'
const NOT_CHANGED = 'the cluster is locked or of another version; the object is not there, or was refused'
const NO_BUNDLE = 'the file cannot be written; a part that is missing is no failure'

/** With what each one fails, besides a cluster that it asks and that does not answer. In the order of the usage. */
export const FAILURES: Readonly<Record<string, string>> = {
  get: 'an object is not there, or a kind is not served; the cluster is newer',
  apply: NOT_WRITTEN,
  create: `${NOT_WRITTEN}, or is there already`,
  replace: `${NOT_WRITTEN}, or is not there`,
  delete: `${NOT_WRITTEN}, or is not there`,
  validate: 'a file cannot be used',
  patch: NOT_CHANGED,
  label: `${NOT_CHANGED}; a label has another value`,
  version: 'the cluster refuses to be asked, or its kubeconfig cannot be read. One that does not answer is no failure',
  bundle: NO_BUNDLE,
  'ipam show': 'an object cannot be read, and is in no number; the cluster is newer',
  'ipam check': 'the report cannot be written; the cluster is newer. Problems are no failure',
  'ipam release': 'an address was not taken back; the report, or the cluster, is refused',
  convert: 'a file cannot be used or carried, and then nothing is printed',
  completion: 'never',
  'bpf nat': NO_MAPS,
  'bpf conntrack': NO_MAPS,
  'bpf routes': NO_MAPS,
  'bpf affinity': NO_MAPS,
  'bpf counters': NO_MAPS,
  explain: 'manifests, or maps, cannot be read, or have no such end; a DEFECT. A verdict is no failure',
  flows: 'no agent tells flows there',
  'policy check': 'something of the files cannot be used; a DEFECT',
  'node status': 'the node is not ready; no agent answers; the NodeNetwork that was asked for is not known',
  'node checksystem': 'something is blocking, or could not be looked at',
  'node bundle': NO_BUNDLE,
  'install endpoint': 'no address was found, or none answers as this cluster',
  'install dns': 'the platform is not known; the patch was refused',
  'install images': 'the file has no Installation, or one that cannot be used',
  'install check': 'something is blocking; a node has not answered in time',
  'install remove': 'the Installation is still there when the time is over',
  'migrate host-endpoints': 'endpoints might judge otherwise; none came in time; the cluster is locked or of another version',
  'upgrade plan': 'something is in the way',
  'upgrade run': 'something is in the way, another run is at work, or a step has not come to its end',
  'upgrade back': 'the imported objects are in use, another run is at work, or an owner was not found',
}

/** As the page has it. */
export function exitCodesTable(): string {
  return [
    '| command | 1 means |',
    '|---|---|',
    ...Object.entries(FAILURES).map(([name, failure]) => `| \`${name}\` | ${failure} |`),
    '',
  ].join('\n')
}
