// SPDX-License-Identifier: Apache-2.0
/** etcd, kube-apiserver and, where wanted, controllers and a scheduler, in a place of a lab that every node can
 * reach. Layer: testkit. */
import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hostPort, parseAddr } from '#lib/base/ip.ts'
import { mapLimited } from '#lib/base/async/map-limited.ts'
import type { Lab } from '../../lab/lab.ts'
import { subnetOf, withBits } from '../../lab/network/subnets.ts'
import { waitFor } from '../../lab/wait.ts'
import { Authority } from './certificates.ts'
import { Daemons } from './daemons.ts'
import { controllerFlags, etcdFlags, GO_ENV, PORT, schedulerFlags, serverFlags } from './flags.ts'
import { ADMIN, CONTROLLERS, isNode, kubeconfigText, kubelet, SCHEDULER, tokenFile, tokenOf, type Identity } from './identities.ts'
import { requestsFor } from './objects.ts'
import type { ApiRequest } from './objects.ts'

const READY_MS = 120_000
/** the server's present address, for later processes */
const ADDRESS_FILE = 'address'
const SERVICE_NAMES = ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc', 'kubernetes.default.svc.cluster.local']

export interface ControlPlaneOptions {
  readonly lab: Lab
  /** with the programs of programs.ts */
  readonly programs: string
  /** empty, seen from inside nodes too: certificates, data, logs */
  readonly folder: string
  /** holds every cluster IP of the objects */
  readonly serviceCidrs: readonly string[]
  /** runs controllers and a scheduler, which give each node a part of these; without them objects are all there is */
  readonly podCidrs?: readonly string[]
  /** how nodes find the API server, and the addresses it will have, one after the other; else it has the
   * gateway's */
  readonly host?: { readonly name: string; readonly addresses: readonly string[] }
}

/** Lives in the fabric's namespace, where it always answers at the address that is the nodes' gateway. */
export class ControlPlane implements AsyncDisposable {
  readonly #options: ControlPlaneOptions
  readonly #daemons: Daemons
  readonly #gateway: string
  #address: string

  private constructor(options: ControlPlaneOptions) {
    this.#options = options
    this.#daemons = new Daemons(options.lab, options.folder)
    this.#gateway = options.lab.topology.fabric.addresses[0]?.split('/')[0] ?? ''
    this.#address = options.host?.addresses[0] ?? this.#gateway
  }

  /** Resolves when it serves the default namespace. Throws with the end of a log when it ends, or is not ready in
   * time. */
  static async start(options: ControlPlaneOptions): Promise<ControlPlane> {
    const plane = new ControlPlane(options)
    try {
      await plane.#writeFiles()
      await plane.startStore()
      await plane.startServer()
    } catch (thrown) {
      await plane[Symbol.asyncDispose]()
      throw thrown
    }
    return plane
  }

  /** One that runs already, with these options. */
  static attach(options: ControlPlaneOptions): ControlPlane {
    const plane = new ControlPlane(options)
    plane.#address = readFileSync(join(options.folder, ADDRESS_FILE), 'utf8')
    return plane
  }

  /** A kubeconfig of an administrator. */
  get kubeconfig(): string {
    return this.kubeconfigOf(ADMIN)
  }

  /** Where nodes find the API server. */
  get address(): string {
    return this.#address
  }

  /** Where it is found whatever happens. */
  get gateway(): string {
    return this.#gateway
  }

  get authority(): string {
    return join(this.#options.folder, 'authority.crt')
  }

  kubeconfigOf(identity: Identity): string {
    return join(this.#options.folder, `${identity.user.replaceAll(':', '-')}.kubeconfig`)
  }

  /** One for this user of Kubernetes' kubeconfigs; `byName`: with the name by which nodes find the server. */
  writeKubeconfig(path: string, user: object, byName: boolean): void {
    const host = byName ? (this.#options.host?.name ?? this.#gateway) : this.#gateway
    writeFileSync(path, kubeconfigText(`https://${hostPort(host, PORT)}`, this.authority, user))
  }

  /** Creates the objects (parsed manifests, a List taken apart) in their order. Throws with the server's answer when
   * it refuses one. */
  async create(objects: readonly unknown[]): Promise<void> {
    for (const request of objects.flatMap(requestsFor)) await this.#send(request)
  }

  /** Starts etcd, with what it had. */
  async startStore(): Promise<void> {
    await this.#run('etcd', etcdFlags(join(this.#options.folder, 'etcd')))
  }

  /** SIGKILL: the API server stays, and can neither read nor write. */
  async stopStore(): Promise<void> {
    await this.#daemons.stop('fabric', 'etcd', 'SIGKILL')
  }

  /** Starts kube-apiserver, and those that go with it, and waits until it serves. */
  async startServer(): Promise<void> {
    const { folder, serviceCidrs, podCidrs, lab } = this.#options
    writeFileSync(join(folder, ADDRESS_FILE), this.#address)
    if (this.#address !== this.#gateway) await lab.mustRun('fabric', ['ip', 'addr', 'replace', withSubnet(this.#address), 'dev', 'br0'])
    await this.#run('kube-apiserver', serverFlags({ folder, serviceCidrs, address: this.#address, controllers: podCidrs !== undefined }))
    await this.#ready(['etcd', 'kube-apiserver'], ['/readyz', '/api/v1/namespaces/default'])
    if (podCidrs !== undefined) await this.#startControllers(podCidrs)
  }

  /** Controllers go with it: their watches would come back half a minute after it, and tests wait for them. */
  async stopServer(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    for (const program of ['kube-scheduler', 'kube-controller-manager']) await this.#daemons.stop('fabric', program, 'SIGKILL')
    await this.#daemons.stop('fabric', 'kube-apiserver', signal)
  }

  /** Stops it; it will start at the next of its addresses, and no server is at the old one any more. */
  async leaveAddress(next: string): Promise<void> {
    await this.stopServer('SIGKILL')
    await this.#options.lab.mustRun('fabric', ['ip', 'addr', 'del', withSubnet(this.#address), 'dev', 'br0'])
    this.#address = next
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const program of ['kube-scheduler', 'kube-controller-manager', 'kube-apiserver', 'etcd'])
      await this.#daemons.stop('fabric', program, 'SIGKILL')
  }

  async #startControllers(podCidrs: readonly string[]): Promise<void> {
    const { folder, serviceCidrs } = this.#options
    const config = (identity: Identity): string => this.kubeconfigOf(identity)
    await this.#run('kube-controller-manager', controllerFlags({ folder, serviceCidrs, podCidrs, kubeconfig: config(CONTROLLERS) }))
    await this.#run('kube-scheduler', schedulerFlags(config(SCHEDULER)))
    // pods cannot be made before
    await this.#ready(['kube-controller-manager', 'kube-scheduler'], ['/api/v1/namespaces/default/serviceaccounts/default'])
  }

  async #writeFiles(): Promise<void> {
    const { folder, lab } = this.#options
    mkdirSync(folder, { recursive: true })
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    writeFileSync(join(folder, 'accounts.pub'), publicKey.export({ type: 'spki', format: 'pem' }))
    writeFileSync(join(folder, 'accounts.key'), privateKey.export({ type: 'sec1', format: 'pem' }))
    const identities = [ADMIN, CONTROLLERS, SCHEDULER, ...lab.topology.nodes.map((node) => kubelet(node.name))]
    writeFileSync(join(folder, 'tokens.csv'), tokenFile(identities))
    for (const identity of identities) this.writeKubeconfig(this.kubeconfigOf(identity), { token: tokenOf(identity) }, isNode(identity))
    const authority = await Authority.make(folder)
    await authority.issue('server', '/CN=kube-apiserver', this.#serverNames())
    // what kubelets ask the server for
    await authority.issue('server-client', '/O=system:masters/CN=kube-apiserver', [])
  }

  #serverNames(): string[] {
    const { lab, serviceCidrs, host } = this.#options
    const names = ['localhost', ...(host === undefined ? [] : [host.name]), ...SERVICE_NAMES]
    const own = lab.topology.fabric.addresses.map((address) => address.split('/')[0] ?? '')
    // the service of the server itself has the first address of each range
    const first = serviceCidrs.map((cidr) => (cidr.split('/')[0] ?? '').replace(/\.0$/, '.1').replace(/::$/, '::1'))
    return [
      ...names.map((name) => `DNS:${name}`),
      ...['127.0.0.1', ...(host?.addresses ?? []), ...own, ...first].map((address) => `IP:${address}`),
    ]
  }

  async #ready(programs: readonly string[], paths: readonly string[]): Promise<void> {
    const ready = await waitFor(
      async () => {
        if (programs.some((program) => this.#daemons.pid('fabric', program) === undefined)) return 'ended'
        return (await mapLimited(paths, 2, (path) => this.#serves(path))).every(Boolean) ? 'ready' : undefined
      },
      { timeoutMs: READY_MS, everyMs: 200 },
    )
    if (ready === 'ready') return
    const logs = programs.map((program) => this.#daemons.logEnd('fabric', program)).join('\n')
    throw new Error(`${programs.join(', ')}: ${ready ?? 'not ready in time'}: ${logs}`)
  }

  async #serves(path: string): Promise<boolean> {
    const { status } = await this.#options.lab.run('fabric', [...this.#curl(), '--fail', this.#url(path)])
    return status === 0
  }

  async #send(request: ApiRequest): Promise<void> {
    const flags = ['--fail-with-body', '-X', request.method, '-H', `Content-Type: ${request.type}`, '--data-binary', '@-']
    const { status, stdout, stderr } = await this.#options.lab.run('fabric', [...this.#curl(), ...flags, this.#url(request.path)], {
      input: request.body,
    })
    if (status !== 0) throw new Error(`${request.method} ${request.path}: ${stderr}${stdout}`)
  }

  #curl(): string[] {
    return ['curl', '-gsS', '--max-time', '30', '--cacert', this.authority, '-H', `Authorization: Bearer ${tokenOf(ADMIN)}`]
  }

  #url(path: string): string {
    return `https://${hostPort(this.#gateway, PORT)}${path}`
  }

  async #run(program: string, flags: readonly string[]): Promise<void> {
    await this.#daemons.start('fabric', [join(this.#options.programs, program), ...flags], { name: program, env: GO_ENV })
  }
}

/** "172.31.0.2/24" */
function withSubnet(address: string): string {
  const addr = parseAddr(address)
  return withBits(addr, subnetOf(addr).bits)
}
