// SPDX-License-Identifier: Apache-2.0
/** The commands of netplanectl that ask or change a cluster, as data. Layer: cli (pure). */
import type { Flag } from '../given.ts'

/** Flags that several commands have. */
export interface FlagGroup {
  readonly heading: string
  readonly flags: readonly Flag[]
}

export interface ClusterCommand {
  readonly name:
    | 'get'
    | 'apply'
    | 'create'
    | 'replace'
    | 'delete'
    | 'validate'
    | 'patch'
    | 'label'
    | 'version'
    | 'bundle'
    | 'ipam show'
    | 'ipam check'
    | 'ipam release'
    | 'convert'
    | 'completion'
  readonly about: string
  /** what it takes, for people */
  readonly usage: string
  /** words without a flag */
  readonly takesWords: boolean
  /** its own */
  readonly flags: readonly Flag[]
  readonly groups: readonly FlagGroup[]
}

/** Where settings come from when no flag says them. */
export const CONFIG_FILE = '/etc/netplane/netplanectl.cfg'

/** How the cluster is reached. */
export const CONNECTION_FLAGS: readonly Flag[] = [
  {
    name: 'kubeconfig',
    value: 'FILE',
    about: 'how the API server is reached (or KUBECONFIG, the configuration file, ~/.kube/config, a pod)',
  },
  {
    name: 'context',
    value: 'NAME',
    about: 'of the kubeconfig (or K8S_CURRENT_CONTEXT, the configuration file; else its current one)',
  },
  { name: 'config', short: 'c', value: 'FILE', about: `the configuration file (default: ${CONFIG_FILE}, where there is one)` },
]

const CONNECTION: FlagGroup = { heading: 'every one of these that asks a cluster', flags: CONNECTION_FLAGS }
const ALL: FlagGroup = { heading: 'every one of these', flags: [{ name: 'help', short: 'h', about: 'this text' }] }

const FILES: FlagGroup = {
  heading: 'get, apply, create, replace, delete, validate, convert',
  flags: [
    {
      name: 'filename',
      short: 'f',
      value: 'FILE',
      multiple: true,
      about: 'a file of YAML or JSON, a directory of them, or - for standard input; several times',
    },
    { name: 'recursive', short: 'R', about: 'directories with those below' },
    { name: 'skip-empty', about: 'files may be without objects' },
  ],
}

const WRITES: FlagGroup = {
  heading: 'apply, create, replace, delete, patch, label',
  flags: [{ name: 'namespace', short: 'n', value: 'NS', about: 'of objects that do not say theirs (default: default)' }],
}

export const ALLOW_MISMATCH: Flag = { name: 'allow-version-mismatch', about: 'go on although the cluster is of another version' }

const VERSIONS: FlagGroup = {
  heading: 'get, apply, create, replace, delete, patch, label, ipam',
  flags: [ALLOW_MISMATCH],
}

/** In the order of the usage. */
export const flagGroups: readonly FlagGroup[] = [FILES, WRITES, VERSIONS, CONNECTION, ALL]

const OF_FILES = [FILES, WRITES, VERSIONS, CONNECTION, ALL]
const BY_NAME = [WRITES, VERSIONS, CONNECTION, ALL]

export const clusterCommands: readonly ClusterCommand[] = [
  {
    name: 'get',
    about: 'shows objects: of a kind, by name, or those that files name',
    usage: 'KIND [NAME…]',
    takesWords: true,
    flags: [
      { name: 'output', short: 'o', value: 'FORM', about: 'wide, yaml, json, name, custom-columns=HEADING[:PATH],…' },
      { name: 'selector', short: 'l', value: 'SELECTOR', about: 'those with such labels: a=b,c!=d,e in (f,g),!h' },
      { name: 'namespace', short: 'n', value: 'NS', about: 'where they are (default: default)' },
      { name: 'all-namespaces', short: 'A', about: 'wherever they are' },
      { name: 'export', about: 'without what the cluster has added; of objects by name' },
    ],
    groups: [FILES, VERSIONS, CONNECTION, ALL],
  },
  {
    name: 'apply',
    about: 'makes objects, or replaces the spec of those there are',
    usage: '-f FILE',
    takesWords: false,
    flags: [],
    groups: OF_FILES,
  },
  {
    name: 'create',
    about: 'makes objects that are not there',
    usage: '-f FILE',
    takesWords: false,
    flags: [{ name: 'skip-exists', about: 'those that are there are no error' }],
    groups: OF_FILES,
  },
  { name: 'replace', about: 'replaces objects that are there', usage: '-f FILE', takesWords: false, flags: [], groups: OF_FILES },
  {
    name: 'delete',
    about: 'deletes objects, by name or as files name them',
    usage: 'KIND NAME…',
    takesWords: true,
    flags: [{ name: 'skip-not-exists', short: 's', about: 'those that are not there are no error' }],
    groups: OF_FILES,
  },
  {
    name: 'validate',
    about: 'checks files as apply does, and writes nothing; needs no cluster',
    usage: '-f FILE',
    takesWords: false,
    flags: [{ name: 'namespace', short: 'n', value: 'NS', about: 'of objects that do not say theirs (default: default)' }],
    groups: [FILES, ALL],
  },
  {
    name: 'patch',
    about: 'changes a part of an object',
    usage: 'KIND NAME',
    takesWords: true,
    flags: [
      { name: 'patch', short: 'p', value: 'PATCH', about: 'JSON or YAML: {"spec": {"order": 5}}' },
      { name: 'type', short: 't', value: 'TYPE', about: 'merge (default), json; strategic is merge: our kinds have no keys of lists' },
    ],
    groups: BY_NAME,
  },
  {
    name: 'label',
    about: 'sets labels of an object, or takes them away: KEY=VALUE, KEY-',
    usage: 'KIND NAME LABEL…',
    takesWords: true,
    flags: [
      { name: 'overwrite', about: 'labels that have another value already' },
      { name: 'remove', about: 'takes away labels that are given as KEY' },
    ],
    groups: BY_NAME,
  },
  {
    name: 'version',
    about: 'of this program, of the cluster, and those that its nodes run',
    usage: '',
    takesWords: false,
    flags: [
      { name: 'client', about: 'of this program alone; needs no cluster' },
      { name: 'settings', about: 'how the cluster is reached, and what says so' },
      { name: 'json', about: 'JSON instead of text' },
    ],
    groups: [CONNECTION, ALL],
  },
  {
    name: 'bundle',
    about: 'all of the cluster that concerns Netplane in one file, to find out what is wrong; no secrets',
    usage: '',
    takesWords: false,
    flags: [
      { name: 'output', value: 'FILE', about: 'default: netplane-bundle-cluster-TIME.tar.gz here; -: standard output' },
      { name: 'since', value: 'TIME', about: 'how far back logs go: 30m, 24h (default), 7d' },
      { name: 'max-logs', value: 'N', about: 'pods whose logs are read, those in trouble first (default: 50)' },
      { name: 'json', about: 'the index as JSON' },
    ],
    groups: [CONNECTION, ALL],
  },
  {
    name: 'ipam show',
    about: 'how many addresses of each pool are given away',
    usage: '',
    takesWords: false,
    flags: [
      { name: 'ip', value: 'ADDRESS', about: 'who has this address, instead' },
      { name: 'show-blocks', about: 'of each block as well' },
      { name: 'show-borrowed', about: "addresses of pods that are on another node than the block's, instead" },
      { name: 'show-configuration', about: 'by which rules nodes take blocks, instead' },
    ],
    groups: [VERSIONS, CONNECTION, ALL],
  },
  {
    name: 'ipam check',
    about: 'where blocks, pods, nodes and NodeNetworks disagree on addresses; changes nothing',
    usage: '',
    takesWords: false,
    flags: [
      { name: 'show-all-ips', about: 'every address that a block has given away' },
      { name: 'show-problem-ips', about: 'every problem' },
      { name: 'output', short: 'o', value: 'FILE', about: 'a report as JSON, for release' },
    ],
    groups: [VERSIONS, CONNECTION, ALL],
  },
  {
    name: 'ipam release',
    about: 'takes addresses back that no pod has',
    usage: '--ip ADDRESS',
    takesWords: false,
    flags: [
      { name: 'ip', value: 'ADDRESS', multiple: true, about: 'an address; several times' },
      {
        name: 'from-report',
        value: 'FILE',
        multiple: true,
        about: 'leaked ones of a report of ipam check; of several, those in all; needs the lock',
      },
      { name: 'force', about: 'addresses that a pod has, or a report without the lock' },
    ],
    groups: [VERSIONS, CONNECTION, ALL],
  },
  {
    name: 'convert',
    about: 'prints objects of older forms, and NetworkPolicies of Kubernetes, as netplane.io/v3; needs no cluster',
    usage: '-f FILE',
    takesWords: false,
    flags: [
      { name: 'output', short: 'o', value: 'FORM', about: 'yaml (default), json' },
      { name: 'namespace', short: 'n', value: 'NS', about: 'of objects that do not say theirs (default: default)' },
      { name: 'ignore-validation', about: 'what agents do not obey is no error' },
    ],
    groups: [FILES, ALL],
  },
  {
    name: 'completion',
    about: 'what a shell reads to complete commands, flags and kinds: bash, zsh or fish',
    usage: 'SHELL',
    takesWords: true,
    flags: [],
    groups: [ALL],
  },
]
