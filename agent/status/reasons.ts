// SPDX-License-Identifier: Apache-2.0
/** Every reason that agents give in conditions and events. Layer: agent/status (pure). */
import type { ReasonTexts } from '#lib/kube/objects/reasons.ts'

export const REASONS = {
  NetplaneIsUp: { at: 'NetworkUnavailable of a Node', meaning: 'the node is programmed', remedy: '' },
  NetplaneIsNotReady: {
    at: 'NetworkUnavailable of a Node',
    meaning: 'the node was not programmed yet since it was started; no pod is scheduled there',
    remedy: 'do what the message says: it has each condition that fails',
  },
  NetplaneIsDegraded: {
    at: 'NetworkUnavailable of a Node',
    meaning: 'the node works as it was programmed, and something fails now',
    remedy: 'do what the message says: it has each condition that fails',
  },
  Programmed: { at: '`netplane.io/Programmed` of a Pod', meaning: 'its addresses, rules and programs are in the kernel', remedy: '' },
  NotProgrammed: {
    at: '`netplane.io/Programmed` of a Pod',
    meaning: 'one of them was missing for 10 s',
    remedy: 'the message has the step; `netplanectl node status` on its node',
  },
  Refused: {
    at: 'event of any object, or of a Node',
    meaning: 'the object cannot be read; the message has the field, and what became of the object',
    remedy: 'change the field',
  },
  RefusedInPart: { at: 'event of any object', meaning: 'a part of it is not in force', remedy: 'change the field that the message names' },
  NoTier: { at: 'event of a policy', meaning: 'its tier is not there; it is closed for all that it selects', remedy: 'make the tier' },
  NoRoom: {
    at: 'event of a policy',
    meaning: 'its namespace wants more of the node’s tables than there is, and what it selects is closed',
    remedy: 'use fewer and wider rules: [what namespaces may have](policy.md#what-namespaces-may-have-of-the-tables)',
  },
  NoDevice: {
    at: 'event of a HostEndpoint',
    meaning: 'no device of the node is its own, and it protects nothing',
    remedy: 'put `interfaceName` or `expectedIPs` right',
  },
  NothingLeaves: {
    at: 'event of a HostEndpoint',
    meaning: 'it is `*`, and nothing lets the node itself send; the kubelet’s probes of the node’s own pods fail',
    remedy: 'let it name the profile `netplane-default-allow`, or make a policy of type Egress for it',
  },
  TooManyRules: {
    at: 'event of a Pod or HostEndpoint',
    meaning: 'it has more rules than programs look through; what comes later is denied',
    remedy: 'use fewer policies for it, or a kernel from 5.6 on with type information',
  },
  ForeignFirewall: {
    at: 'event of a Node',
    meaning: 'rules of another program drop what is to pass',
    remedy: 'the message has the chain and what to let pass',
  },
  NoDirectEndpoint: {
    at: 'event of a Node',
    meaning: 'the API server is asked by its service’s address, which another program has to serve',
    remedy: 'make the config map: `netplanectl install endpoint --apply`',
  },
} as const satisfies ReasonTexts

export type AgentReason = keyof typeof REASONS
