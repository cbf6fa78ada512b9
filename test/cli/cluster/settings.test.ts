// SPDX-License-Identifier: Apache-2.0
/** Where settings come from. Layer: test. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readSettings, type SettingsInput } from '../../../cli/cluster/settings.ts'

const NO_FLAGS = { kubeconfig: undefined, context: undefined, config: undefined }

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-settings-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true })
})

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

function read(input: Partial<SettingsInput>): ReturnType<typeof readSettings> {
  return readSettings({ flags: NO_FLAGS, env: {}, home: folder, configFile: join(folder, 'none'), ...input })
}

const HEAD = 'apiVersion: netplane.io/v3\nkind: NetplaneAPIConfig\nspec:\n'

test('each setting by itself: a flag, else the environment, else the file, else the default', () => {
  const configFile = file('ctl.cfg', `${HEAD}  kubeconfig: /from/file\n  k8sCurrentContext: c\n`)
  expect(read({})).toEqual({ kubeconfig: undefined, context: undefined })
  mkdirSync(join(folder, '.kube'))
  const own = file('.kube/config', '')
  expect(read({}).kubeconfig).toEqual({ value: own, source: 'default' })
  expect(read({ configFile })).toEqual({
    kubeconfig: { value: '/from/file', source: configFile },
    context: { value: 'c', source: configFile },
  })
  const env = { KUBECONFIG: '/from/env', K8S_CURRENT_CONTEXT: '' }
  expect(read({ configFile, env })).toEqual({
    kubeconfig: { value: '/from/env', source: 'KUBECONFIG' },
    context: { value: 'c', source: configFile },
  })
  expect(read({ configFile, env, flags: { ...NO_FLAGS, kubeconfig: '/from/flag' } }).kubeconfig).toEqual({
    value: '/from/flag',
    source: '--kubeconfig',
  })
})

test('of several files in KUBECONFIG the one that is there is taken', () => {
  const [a, b] = [file('a', ''), file('b', '')]
  expect(read({ env: { KUBECONFIG: `/none:${a}` } }).kubeconfig?.value).toBe(a)
  expect(() => read({ env: { KUBECONFIG: `${a}:${b}` } })).toThrow('KUBECONFIG: names several files')
  expect(
    read({ env: { KUBECONFIG: `${a}:${b}` }, flags: { kubeconfig: b, context: undefined, config: undefined } }).kubeconfig?.value,
  ).toBe(b)
})

test.each([
  ['kind: x\n', ':1: apiVersion: must be netplane.io/v3'],
  [`${HEAD.replace('NetplaneAPIConfig', 'Other')}  {}\n`, ':2: kind: must be NetplaneAPIConfig'],
  [`${HEAD}  kubeconfig: a\n  kubconfig: b\n`, ':5: spec.kubconfig: is not a field'],
  [`${HEAD}  datastoreType: etcdv3\n`, ':4: spec.datastoreType: must be kubernetes'],
  [`${HEAD}  etcdEndpoints: https://e\n`, ':4: spec.etcdEndpoints: is not taken: this version reaches the cluster by its API server alone'],
  [`${HEAD}  k8sAPIEndpoint: https://e\n`, ':4: spec.k8sAPIEndpoint: is not taken: name a kubeconfig'],
  ['a: [\n', 'is not valid YAML'],
  ['', 'must be one NetplaneAPIConfig'],
])('a file with %j is refused: %s', (text, reason) => {
  expect(() => read({ configFile: file('ctl.cfg', text) })).toThrow(reason)
})

test('a file that was named must be there', () => {
  expect(() => read({ flags: { ...NO_FLAGS, config: join(folder, 'gone') } })).toThrow('gone: does not exist')
})

test('another datastore is refused', () => {
  expect(() => read({ env: { DATASTORE_TYPE: 'etcdv3' } })).toThrow('DATASTORE_TYPE: etcdv3 is not taken')
})
