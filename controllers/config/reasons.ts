// SPDX-License-Identifier: Apache-2.0
/** Every reason that the controllers give in conditions and events of their configuration.
 * Layer: controllers (pure). */
import type { ReasonTexts } from '#lib/kube/objects/reasons.ts'

export const REASONS = {
  Accepted: { at: '`Accepted`', meaning: 'the spec counts', remedy: '' },
  Refused: {
    at: '`Accepted`',
    meaning: 'a field of the spec is not supported or cannot be read; what counted before goes on',
    remedy: 'change the field that the message names; what counts is in `status.runningConfig`',
  },
  Synced: { at: '`Synced`', meaning: 'automatic host endpoints are as they are to be', remedy: '' },
  NamesTaken: {
    at: '`Synced`',
    meaning: 'another host endpoint has the name of an automatic one, and stays as it is',
    remedy: 'rename or delete it; two templates must not make the same name',
  },
  AgentsUnready: {
    at: '`Synced`',
    meaning: 'agents have not told the interfaces of their nodes, or are too old to',
    remedy: 'wait until agents of this version run on the nodes that the message names',
  },
  WriteRefused: {
    at: '`Synced`',
    meaning: 'the API server has refused a write',
    remedy: 'see the admission webhook, policy or right that the message names',
  },
} as const satisfies ReasonTexts
