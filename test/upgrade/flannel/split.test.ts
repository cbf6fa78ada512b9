// SPDX-License-Identifier: Apache-2.0
/** Flannel's own DaemonSet, made of what an old installation has. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, namedOf, type ApiObject } from '#lib/api/resource.ts'
import { fieldsOf, objectsIn } from '#lib/base/object.ts'
import { FLANNEL, splitFlannel } from '#upgrade/flannel/split.ts'
import { CANAL, CANAL_CONFIG } from './canal.ts'

function podOf(object: ApiObject): Readonly<Record<string, unknown>> {
  return fieldsOf(fieldsOf(fieldsOf(object['spec'])['template'])['spec'])
}

function made(daemonSet = CANAL): ApiObject {
  const found = splitFlannel(daemonSet, CANAL_CONFIG).find(({ kind }) => kind === 'DaemonSet')
  if (found === undefined) throw new Error('no DaemonSet')
  return found
}

/** That installation with other fields in flannel's container. */
function withContainer(changes: object): ApiObject {
  const containers = objectsIn(podOf(CANAL)['containers']).map((one) => (one['name'] === 'kube-flannel' ? { ...one, ...changes } : one))
  return asApiObject({ ...CANAL, spec: { ...fieldsOf(CANAL['spec']), template: { spec: { ...podOf(CANAL), containers } } } })
}

function containerOf(daemonSet: ApiObject): Readonly<Record<string, unknown>> {
  const [only, ...others] = objectsIn(podOf(daemonSet)['containers'])
  expect(others).toEqual([])
  return only ?? {}
}

test('every object has a name of its own, so that the old installation goes without it', () => {
  const objects = splitFlannel(CANAL, CANAL_CONFIG)
  expect(objects.map(namedOf).map(({ kind, namespace = '-', name }) => `${kind} ${namespace} ${name}`)).toEqual([
    `ServiceAccount kube-system ${FLANNEL}`,
    `ClusterRole - ${FLANNEL}`,
    `ClusterRoleBinding - ${FLANNEL}`,
    `ConfigMap kube-system ${FLANNEL}`,
    `DaemonSet kube-system ${FLANNEL}`,
  ])
  const text = JSON.stringify(objects)
  expect(text).not.toContain('canal-config')
  expect(text).not.toContain('"canal"')
})

test('flannel is told what it was told, and no port of the node is wanted twice', () => {
  expect(podOf(made())).toEqual({
    serviceAccountName: FLANNEL,
    hostNetwork: true,
    priorityClassName: 'system-node-critical',
    nodeSelector: { 'kubernetes.io/os': 'linux' },
    tolerations: [{ operator: 'Exists' }],
    terminationGracePeriodSeconds: 0,
    containers: [
      {
        name: 'kube-flannel',
        image: 'registry.example.com/flannel:v0.24.4',
        command: ['/opt/bin/flanneld', '--ip-masq', '--kube-subnet-mgr'],
        args: ['--iface-regex', 'eth.*'],
        securityContext: { privileged: true },
        env: [
          { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
          { name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
          { name: 'FLANNELD_IFACE', valueFrom: { configMapKeyRef: { name: FLANNEL, key: 'canal_iface' } } },
          { name: 'FLANNELD_IP_MASQ', valueFrom: { configMapKeyRef: { name: FLANNEL, key: 'masquerade' } } },
        ],
        volumeMounts: [
          { name: 'xtables-lock', mountPath: '/run/xtables.lock' },
          { name: 'flannel-cfg', mountPath: '/etc/kube-flannel/' },
          { name: 'flannel-run', mountPath: '/run/flannel' },
        ],
      },
    ],
    volumes: [
      { name: 'xtables-lock', hostPath: { path: '/run/xtables.lock', type: 'FileOrCreate' } },
      { name: 'flannel-cfg', configMap: { name: FLANNEL, defaultMode: 420 } },
      { name: 'flannel-run', hostPath: { path: '/run/flannel', type: 'DirectoryOrCreate' } },
    ],
  })
  expect(splitFlannel(CANAL, CANAL_CONFIG).find(({ kind }) => kind === 'ConfigMap')?.['data']).toEqual(CANAL_CONFIG['data'])
})

test.each([
  [['--healthz-port', '8081', '--ip-masq'], ['--ip-masq']],
  [['-healthz-ip=::', '--ip-masq', '-healthz-port=1'], ['--ip-masq']],
  [['--ip-masq', '--healthz-port'], ['--ip-masq']],
])('of the arguments %j these stay: %j', (args, stay) => {
  expect(containerOf(made(withContainer({ args })))['args']).toEqual(stay)
})

test('a subnet file that was on the node stays where it was', () => {
  const volumeMounts = [{ name: 'lib-modules', mountPath: '/var/run/flannel/' }]
  const daemonSet = made(withContainer({ volumeMounts }))
  expect(containerOf(daemonSet)['volumeMounts']).toEqual(volumeMounts)
  expect(objectsIn(podOf(daemonSet)['volumes']).map(({ name }) => name)).toEqual(['lib-modules'])
})

test('a DaemonSet without flannel has nothing to be split', () => {
  expect(splitFlannel(withContainer({ name: 'other' }), CANAL_CONFIG)).toEqual([])
  expect(splitFlannel(withContainer({ name: 'flannel' }), CANAL_CONFIG)).toHaveLength(5)
})
