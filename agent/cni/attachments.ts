// SPDX-License-Identifier: Apache-2.0
/** Which veth and addresses each sandbox has, on disk so that the next agent knows. Layer: agent/cni. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { removeDurably, removeUnfinished, writeDurably } from '#lib/base/os/durable-file.ts'
import { errorText } from '#lib/base/errors.ts'
import { formatAddr, parseAddr } from '#lib/base/ip.ts'
import { isObject } from '#lib/base/object.ts'
import type { Holder } from '#lib/model/ip-block.ts'
import { nameKey } from '#lib/model/ref.ts'
import type { Attached } from './pod-overlay-sink.ts'
import { CniError } from './cni-error.ts'
import type { PodVeth } from './networking/pod-veth.ts'
import type { PodSandbox } from './request.ts'
import { filesIn } from './files.ts'

/** The plugin that gave the addresses, with the configuration that it was given, and where it was found then. */
export interface Delegate {
  readonly type: string
  readonly config: string
  /** CNI_PATH */
  readonly path: string
}

export interface Attachment extends PodSandbox, PodVeth {
  /** undefined: we gave the addresses */
  readonly delegate: Delegate | undefined
  /** true: Netplane made the veth; false: another plugin made it and gave the addresses */
  readonly ours: boolean
}

/** One attachment for each sandbox, and one for each pod. A sandbox that takes another's place takes its veth as
 * well. */
export class AttachmentFiles {
  readonly #folder: string
  readonly #bySandbox = new Map<string, Attachment>()
  readonly #byPod = new Map<string, Attachment>()
  /** sandboxes whose file is there, and cannot be read */
  readonly #unreadable = new Set<string>()

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Reads what an agent before has left; returns what cannot be read, with why. */
  load(): readonly string[] {
    const broken: string[] = []
    try {
      removeUnfinished(this.#folder)
    } catch (thrown) {
      broken.push(`${this.#folder}: ${errorText(thrown)}`)
    }
    for (const name of filesIn(this.#folder).filter((file) => file.endsWith(SUFFIX))) {
      try {
        this.#remember(readAttachment(JSON.parse(readFileSync(join(this.#folder, name), 'utf8'))))
      } catch (thrown) {
        this.#unreadable.add(name.slice(0, -SUFFIX.length))
        broken.push(`${join(this.#folder, name)}: ${errorText(thrown)}`)
      }
    }
    return broken
  }

  all(): readonly Attachment[] {
    return [...this.#bySandbox.values()]
  }

  ofSandbox(containerId: string): Attachment | undefined {
    return this.#bySandbox.get(containerId)
  }

  /** Sandboxes of which nothing is known but that they may have an address. */
  unreadable(): readonly string[] {
    return [...this.#unreadable]
  }

  /** True where the sandbox may have addresses. */
  has(containerId: string): boolean {
    return this.#bySandbox.has(containerId) || this.#unreadable.has(containerId)
  }

  ofPod(pod: { readonly namespace: string; readonly name: string }): Attachment | undefined {
    return this.#byPod.get(nameKey(pod))
  }

  save(attachment: Attachment): void {
    const addresses = attachment.addresses.map(formatAddr)
    writeDurably(this.#path(attachment), `${JSON.stringify({ ...attachment, addresses }, null, 2)}\n`)
    this.#remember(attachment)
  }

  forget(attachment: Attachment): void {
    removeDurably(this.#path(attachment))
    this.#bySandbox.delete(attachment.containerId)
    const key = nameKey(refOf(attachment))
    if (this.#byPod.get(key)?.containerId === attachment.containerId) this.#byPod.delete(key)
  }

  /** What cannot be read, of a sandbox that is gone. */
  forgetUnreadable(containerId: string): void {
    if (!this.#unreadable.delete(containerId)) return
    removeDurably(this.#path({ containerId }))
  }

  #remember(attachment: Attachment): void {
    this.#unreadable.delete(attachment.containerId)
    this.#bySandbox.set(attachment.containerId, attachment)
    this.#byPod.set(nameKey(refOf(attachment)), attachment)
  }

  #path({ containerId }: Pick<Attachment, 'containerId'>): string {
    return join(this.#folder, `${containerId}${SUFFIX}`)
  }
}

const SUFFIX = '.json'

export function refOf({ namespace, pod }: Pick<PodSandbox, 'namespace' | 'pod'>): { readonly namespace: string; readonly name: string } {
  return { namespace, name: pod }
}

/** Of its addresses. */
export function holderOf({ namespace, pod, containerId }: Holder): Holder {
  return { namespace, pod, containerId }
}

/** What is known by it of its pod. */
export function attachedBy({ host, ours, addresses, uid }: Attachment): Attached {
  return { iface: host, ours, addresses, uid }
}

/** Throws CniError when this sandbox is not the one of then. */
export function refuseOther(before: Attachment | undefined, sandbox: PodSandbox): void {
  if (before === undefined) return
  if (before.ifname !== sandbox.ifname)
    throw new CniError('config', `the pod has ${before.ifname} already: one interface is all that it gets`)
  if (before.namespace !== sandbox.namespace || before.pod !== sandbox.pod)
    throw new CniError('environment', `CNI_CONTAINERID: is that of Pod ${nameKey(refOf(before))}`)
}

function readAttachment(raw: unknown): Attachment {
  const fields = isObject(raw) ? raw : {}
  const text = (key: string, from: Readonly<Record<string, unknown>> = fields): string => {
    const value = from[key]
    if (typeof value !== 'string' || value === '') throw new TypeError(`${key} is missing`)
    return value
  }
  const { mtu, addresses, delegate, uid } = fields
  if (typeof mtu !== 'number' || !Array.isArray(addresses)) throw new TypeError('mtu or addresses are missing')
  return {
    containerId: text('containerId'),
    ifname: text('ifname'),
    netns: text('netns'),
    namespace: text('namespace'),
    pod: text('pod'),
    ...(typeof uid === 'string' ? { uid } : {}),
    host: text('host'),
    mtu,
    addresses: addresses.map((addr) => parseAddr(String(addr))),
    ours: fields['ours'] !== false,
    delegate: isObject(delegate) ? readDelegate(delegate, text) : undefined,
  }
}

/** Agents before this one wrote no path, and a runtime may have given none. */
function readDelegate(
  raw: Readonly<Record<string, unknown>>,
  text: (key: string, from: Readonly<Record<string, unknown>>) => string,
): Delegate {
  return { type: text('type', raw), config: text('config', raw), path: typeof raw['path'] === 'string' ? raw['path'] : '' }
}
