// SPDX-License-Identifier: Apache-2.0
/** The lab's API server: what an administrator puts there, a veth to it, and writes that wait while it is away.
 * Layer: soak. */
import { join } from 'node:path'
import { ApiClient } from '#lib/api/client.ts'
import { isRefused } from '#lib/api/errors.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject, namedOf, type ApiObject, type Named } from '#lib/api/resource.ts'
import { CommandError } from '#lib/base/errors.ts'
import { mustRun } from '../../lab/processes/command.ts'
import type { Lab } from '../../lab/lab.ts'
import { waitFor } from '../../lab/wait.ts'
import { agentKubeconfig, type Administered } from '../../testkit/kubernetes/agents.ts'
import { ControlPlane } from '../../testkit/kubernetes/control-plane.ts'
import { kubelet } from '../../testkit/kubernetes/identities.ts'
import { kubernetesPrograms } from '../../testkit/kubernetes/build/programs.ts'
import { clusterObjects, nodeObjects, without } from './cluster.ts'

const SERVICE_CIDRS = ['10.96.0.0/16', 'fd00:96::/112']
/** Of our end of the veth, among the nodes' addresses: no other host has it. */
const OUR_ADDRESS = '172.29.0.240/24'
/** ms in which a pod that was deleted at once is gone. */
const GONE_MS = 5000

export class LabApiServer implements AsyncDisposable {
  readonly plane: ControlPlane
  /** as an administrator */
  readonly client: ApiClient
  /** of agents: the rights that deploy/manifests gives, and no other */
  readonly kubeconfig: string
  /** what is to be written once the server is back */
  readonly #waiting: (() => Promise<void>)[] = []
  readonly #applied = new Map<string, readonly Named[]>()
  #isAway = false

  private constructor(plane: ControlPlane, client: ApiClient, kubeconfig: string) {
    this.plane = plane
    this.client = client
    this.kubeconfig = kubeconfig
  }

  /** With everything in it that is there before the first change. To be run in a network namespace of our own. */
  static async start(lab: Lab, folder: string): Promise<LabApiServer> {
    const programs = await kubernetesPrograms()
    await makeVeth(lab)
    const plane = await ControlPlane.start({ lab, programs, folder: join(folder, 'plane'), serviceCidrs: SERVICE_CIDRS })
    const client = new ApiClient({ server: fromKubeconfig(plane.kubeconfig) })
    const control = new LabApiServer(plane, client, await agentKubeconfig(administered({ lab, plane, programs, folder })))
    await control.apply('cluster', [...nodeObjects().map(({ object }) => object), ...clusterObjects()])
    for (const { name, status } of nodeObjects())
      await client.patch({ apiVersion: 'v1', kind: 'Node', name }, { status }, { type: 'merge', subresource: 'status' })
    return control
  }

  clientOf(node: string): ApiClient {
    return new ApiClient({ server: fromKubeconfig(this.plane.kubeconfigOf(kubelet(node))) })
  }

  get isAway(): boolean {
    return this.#isAway
  }

  /** Now, or when the server is back. */
  async write(what: () => Promise<void>): Promise<void> {
    if (this.#isAway) this.#waiting.push(what)
    else await what()
  }

  /** Has these objects there, and no longer those of the last time under this name. */
  async apply(name: string, objects: readonly object[]): Promise<void> {
    const now: Named[] = []
    for (const object of objects) {
      // a status is not the administrator's to say
      const applied = asApiObject(without(object, 'status'))
      await this.client.apply(applied)
      now.push(namedOf(applied))
    }
    const gone = (this.#applied.get(name) ?? []).filter((one) => !now.some((next) => next.kind === one.kind && next.name === one.name))
    for (const one of gone) await this.remove(one)
    this.#applied.set(name, now)
  }

  /** As soon as another of its name is gone. */
  async createAgain(object: unknown): Promise<ApiObject> {
    const wanted = asApiObject(object)
    const create = (): Promise<ApiObject | undefined> =>
      this.client.create(wanted).catch((thrown: unknown) => {
        if (isRefused(thrown, 'AlreadyExists')) return undefined
        throw thrown
      })
    return (await waitFor(create, { timeoutMs: GONE_MS, everyMs: 50 })) ?? (await this.client.create(wanted))
  }

  /** Nothing happens when it is not there. */
  async remove(named: Named, gracePeriodSeconds?: number): Promise<void> {
    const options = gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }
    await this.client.delete(named, options).catch((thrown: unknown) => {
      if (!isRefused(thrown, 'NotFound')) throw thrown
    })
  }

  /** SIGKILL. */
  async kill(what: 'server' | 'store'): Promise<void> {
    this.#isAway = true
    if (what === 'server') await this.plane.stopServer('SIGKILL')
    else await this.plane.stopStore()
  }

  /** What was killed runs again, and what waited is written. */
  async bringBack(): Promise<void> {
    if (!this.#isAway) return
    await this.plane.startStore()
    await this.plane.startServer()
    this.#isAway = false
    for (const write of this.#waiting.splice(0)) await write()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client[Symbol.asyncDispose]()
    await this.plane[Symbol.asyncDispose]()
  }
}

type Parts = Pick<Administered, 'plane' | 'folder'> & { readonly lab: Lab; readonly programs: string }

function administered({ lab, plane, programs, folder }: Parts): Administered {
  const kubectl: Administered['kubectl'] = async (args, options) => {
    const command = [join(programs, 'kubectl'), `--kubeconfig=${plane.kubeconfig}`, '--cache-dir', join(folder, 'kubectl'), ...args]
    const { status, stdout, stderr } = await lab.run('fabric', command, options)
    if (status !== 0) throw new CommandError({ command: `kubectl ${args.join(' ')}`, status, stderr })
    return stdout
  }
  return { plane, folder, kubectl }
}

/** From our own network namespace to the bridge of the nodes' veths. */
async function makeVeth({ topology }: Lab): Promise<void> {
  const { netns } = topology.fabric
  const lines = ['link set lo up', `addr add ${OUR_ADDRESS} dev soak0`, 'link set soak0 up']
  await mustRun(['ip', 'link', 'add', 'soak0', 'type', 'veth', 'peer', 'name', 'soak1', 'netns', netns])
  await mustRun(['ip', '-n', netns, 'link', 'set', 'soak1', 'master', 'br0', 'up'])
  await mustRun(['ip', '-batch', '-'], { input: `${lines.join('\n')}\n` })
}
