// SPDX-License-Identifier: Apache-2.0
/** Command lines of the control plane's programs. Layer: testkit (pure). */
import { join } from 'node:path'

/** Where kube-apiserver listens. */
export const PORT = 6443

/** For programs written in Go. They collect garbage when the heap has grown by so many per cent: memory is cheaper here
 * than processors. */
export const GO_ENV = { GOGC: '400' } as const

const ISSUER = 'https://kubernetes.default.svc.cluster.local'

export function etcdFlags(data: string): string[] {
  return [
    ...['--data-dir', data, '--unsafe-no-fsync', '--log-level', 'warn'],
    ...['--listen-client-urls', 'http://127.0.0.1:2379', '--advertise-client-urls', 'http://127.0.0.1:2379'],
    ...['--listen-peer-urls', 'http://127.0.0.1:2380'],
  ]
}

export interface ServerOptions {
  /** with certificates, keys, tokens */
  readonly folder: string
  readonly serviceCidrs: readonly string[]
  readonly address: string
  /** there are some beside it */
  readonly controllers: boolean
}

export function serverFlags(options: ServerOptions): string[] {
  const at = (name: string): string => join(options.folder, name)
  return [
    ...['--etcd-servers=http://127.0.0.1:2379', '--bind-address=::', `--secure-port=${PORT}`, `--advertise-address=${options.address}`],
    ...[`--tls-cert-file=${at('server.crt')}`, `--tls-private-key-file=${at('server.key')}`, `--client-ca-file=${at('authority.crt')}`],
    ...[`--service-cluster-ip-range=${options.serviceCidrs.join(',')}`, '--authorization-mode=Node,RBAC', '--allow-privileged'],
    ...[`--token-auth-file=${at('tokens.csv')}`, `--service-account-issuer=${ISSUER}`],
    ...[`--service-account-key-file=${at('accounts.pub')}`, `--service-account-signing-key-file=${at('accounts.key')}`],
    ...[`--kubelet-client-certificate=${at('server-client.crt')}`, `--kubelet-client-key=${at('server-client.key')}`],
    ...['--kubelet-preferred-address-types=InternalIP', '--profiling=false'],
    // accounts are made by a controller
    ...(options.controllers ? [] : ['--disable-admission-plugins=ServiceAccount']),
  ]
}

export interface ControllerOptions {
  readonly folder: string
  readonly serviceCidrs: readonly string[]
  readonly podCidrs: readonly string[]
  readonly kubeconfig: string
}

export function controllerFlags(options: ControllerOptions): string[] {
  const at = (name: string): string => join(options.folder, name)
  return [
    ...[`--kubeconfig=${options.kubeconfig}`, '--use-service-account-credentials', '--leader-elect=false', '--bind-address=127.0.0.1'],
    ...[`--service-account-private-key-file=${at('accounts.key')}`, `--root-ca-file=${at('authority.crt')}`],
    ...[
      `--cluster-cidr=${options.podCidrs.join(',')}`,
      '--allocate-node-cidrs',
      `--service-cluster-ip-range=${options.serviceCidrs.join(',')}`,
    ],
    // a node that is gone is missed within a test; one that looks for the server again is not, where everything shares
    // two CPUs
    ...['--node-monitor-period=1s', '--node-monitor-grace-period=40s'],
  ]
}

export function schedulerFlags(kubeconfig: string): string[] {
  return [`--kubeconfig=${kubeconfig}`, '--leader-elect=false', '--bind-address=127.0.0.1']
}
