// SPDX-License-Identifier: Apache-2.0
/** How a pod gets its network. There are two modes: own, where Netplane gives it (own-networking.ts), and chained,
 * where another plugin has given it before us (chained-networking.ts). Layer: agent/cni. */
import type { WaitLimits } from '#lib/base/async/wait.ts'
import type { Pod } from '#lib/model/pod.ts'
import type { Attachment } from '../attachments.ts'
import type { InProgressAdd } from '../in-progress-adds.ts'
import type { RequestOf } from '../request.ts'

/** An ADD whose pod is known. */
export interface AddCall {
  readonly request: RequestOf<'ADD'>
  readonly pod: Pod
  readonly add: InProgressAdd
  /** of everything that it waits for */
  readonly limits: WaitLimits
}

/** In the order in which ADD, CHECK and DEL call them. */
export interface PodNetworking {
  /** What the sandbox is to have. `before`: what it has had since an earlier ADD. */
  plan(call: AddCall, before: Attachment | undefined): Promise<Attachment> | Attachment
  /** The attachment is on disk: its devices come to be, but no packet passes yet. */
  create(attachment: Attachment, before: Attachment | undefined): void
  /** The kernel has the pod's rows and programs: packets may pass. Returns the answer to ADD. */
  activate(attachment: Attachment, call: AddCall): Promise<string> | string

  /** How it differs from what ADD has left; undefined: it does not. */
  whatDiffers(attachment: Attachment): string | undefined

  /** The sandbox goes: no packet passes any more. */
  removeDevices(attachment: Attachment): void
  /** The attachment is about to be forgotten: addresses go back that nothing else tells of. `path`: the caller's
   * CNI_PATH. */
  releaseDelegated(attachment: Attachment, path: string): Promise<void> | void
  /** The attachment is forgotten: the other addresses go back, after the deadline by garbage collection. */
  releaseOwn(attachment: Attachment, deadline: number): Promise<void> | void
}
