// SPDX-License-Identifier: Apache-2.0
/** How the cluster is reached, and what says so: flags before the environment before the configuration file.
 * Layer: cli. */
import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { ConfigError, errorCode, errorText } from '#lib/base/errors.ts'
import { asRecord, FieldError, inside, text as textIn, type Raw } from '#lib/kube/parse/fields.ts'
import { name, word } from '#lib/kube/schema/primitives.ts'
import { field, object } from '#lib/kube/schema/shape.ts'
import { pathSteps } from '#lib/manifests/path.ts'
import { Places, readManifest } from '#lib/manifests/read.ts'
import { CONFIG_FILE } from '../resources/commands.ts'
import type { ConnectionFlags } from '../resources/order.ts'

export interface Setting {
  readonly value: string
  /** "--kubeconfig", "KUBECONFIG", the file's path, "default" */
  readonly source: string
}

export interface Settings {
  /** undefined: the account of the pod that this runs in */
  readonly kubeconfig: Setting | undefined
  /** undefined: the kubeconfig's current one */
  readonly context: Setting | undefined
}

export interface SettingsInput {
  readonly flags: ConnectionFlags
  readonly env: Readonly<Record<string, string | undefined>>
  /** where the user's own kubeconfig is looked for */
  readonly home?: string
  /** where the configuration file is looked for that no flag names */
  readonly configFile?: string
}

const API_CONFIG = { apiVersion: 'netplane.io/v3', kind: 'NetplaneAPIConfig' } as const

const NOT_TAKEN = 'is not taken: name a kubeconfig, which says this'
const NO_ETCD = 'is not taken: this version reaches the cluster by its API server alone'
const refuse = (reason: string, ...fields: readonly string[]) =>
  Object.fromEntries(fields.map((one) => [one, ['string', reason] as const] as const))

const configSpec = object(
  {
    datastoreType: field('Where the objects are.', word('kubernetes')),
    kubeconfig: field('A kubeconfig file.', name),
    k8sCurrentContext: field('Its context.', name),
  },
  {
    refused: {
      ...refuse(NOT_TAKEN, 'k8sAPIEndpoint', 'k8sKeyFile', 'k8sCertFile', 'k8sCAFile', 'k8sAPIToken', 'k8sInsecureSkipTLSVerify'),
      ...refuse(
        NO_ETCD,
        'etcdEndpoints',
        'etcdDiscoverySrv',
        'etcdUsername',
        'etcdPassword',
        'etcdKeyFile',
        'etcdCertFile',
        'etcdCACertFile',
      ),
    },
  },
)

/** Throws ConfigError for what cannot be taken, by the file's line or the variable. */
export function readSettings({ flags, env, home = homedir(), configFile = CONFIG_FILE }: SettingsInput): Settings {
  const file = flags.config ?? configFile
  const config = flags.config !== undefined || existsSync(file) ? readConfig(file) : {}
  const datastore = env['DATASTORE_TYPE']
  if (datastore !== undefined && datastore !== '' && datastore !== 'kubernetes')
    throw new ConfigError('DATASTORE_TYPE', `${datastore} ${NO_ETCD}`)
  const first = (...said: readonly (readonly [source: string, value: string | undefined])[]): Setting | undefined =>
    said.flatMap(([source, value]) => (value === undefined || value === '' ? [] : [{ value, source }]))[0]
  const own = join(home, '.kube/config')
  return {
    kubeconfig: first(
      ['--kubeconfig', flags.kubeconfig],
      ['KUBECONFIG', flags.kubeconfig === undefined ? oneFile(env['KUBECONFIG'] ?? '') : undefined],
      [file, config.kubeconfig],
      ['default', existsSync(own) ? own : undefined],
    ),
    context: first(['--context', flags.context], ['K8S_CURRENT_CONTEXT', env['K8S_CURRENT_CONTEXT']], [file, config.k8sCurrentContext]),
  }
}

/** Clients that take several put them together; we take the one that is there. */
function oneFile(list: string): string | undefined {
  const files = list.split(delimiter).filter((one) => one !== '')
  if (files.length < 2) return files[0]
  const [there, ...more] = files.filter((one) => existsSync(one))
  if (more.length > 0) throw new ConfigError('KUBECONFIG', 'names several files: give one of them by --kubeconfig')
  return there ?? files[0]
}

type Config = Partial<ReturnType<typeof configSpec.read>>

function readConfig(file: string): Config {
  const text = readText(file)
  const read = readManifest(file, text)
  if (read.kind === 'broken') throw new ConfigError(read.line === undefined ? file : `${file}:${read.line}`, read.reason)
  const [first, ...more] = read.objects
  if (first === undefined || more.length > 0) throw new ConfigError(file, `must be one ${API_CONFIG.kind} of ${API_CONFIG.apiVersion}`)
  try {
    const raw = asRecord(first.value)
    mustBe(raw, 'apiVersion')
    mustBe(raw, 'kind')
    return inside(raw, 'spec', configSpec.read)
  } catch (thrown) {
    if (!(thrown instanceof FieldError)) throw thrown
    const line = new Places(file, text).line(first, pathSteps(thrown.path))
    throw new ConfigError(line === undefined ? file : `${file}:${line}`, thrown.message, thrown)
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (thrown) {
    throw new ConfigError(file, errorCode(thrown) === 'ENOENT' ? 'does not exist' : errorText(thrown), thrown)
  }
}

function mustBe(raw: Raw, key: keyof typeof API_CONFIG): void {
  if (textIn(raw, key) !== API_CONFIG[key]) throw new FieldError(key, `must be ${API_CONFIG[key]}`)
}
