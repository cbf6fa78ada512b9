// SPDX-License-Identifier: Apache-2.0
/** Shape of the ControllersConfiguration's spec. Layer: lib/kube. */
import { durationMs } from '../../base/time/duration.ts'
import { asText, FieldError } from '../parse/fields.ts'
import { field, listed, object, required, type Shape } from './shape.ts'
import { integer, name, net, text, texts, word } from './primitives.ts'
import { selector } from './v3-rules.ts'

const switched = word('Enabled', 'Disabled')

/** In ms. */
const duration: Shape<number> = {
  read: (value) => {
    const ms = durationMs(asText(value))
    if (ms === undefined) throw new FieldError('', 'must be a duration like 1h30m, 90s or 250ms')
    return ms
  },
  schema: { type: 'string', pattern: String.raw`^([0-9]{1,9}(ms|s|m|h))+$` },
}

/** Undefined when it is empty. That it can be parsed is not for a schema to say. */
const pattern: Shape<RegExp | undefined> = {
  read: (value) => {
    const expression = asText(value)
    try {
      return expression === '' ? undefined : new RegExp(expression)
    } catch {
      throw new FieldError('', 'is no regular expression')
    }
  },
  schema: text.schema,
}

const reconciled = object({ reconcilerPeriod: field('How often everything is compared, whatever has changed.', duration) })

const hostEndpointTemplate = object({
  generateName: required('What names of its endpoints have after the name of their node.', name),
  interfaceCIDRs: listed('Ranges of the addresses that it is of.', net, { most: 64 }),
  interfacePattern: field('Interfaces that get an endpoint each: a regular expression that their names have in them.', pattern),
  labels: field("Labels of its endpoints, before those of the node's that have the same names.", texts),
  nodeSelector: field('Nodes that it is for, by their labels; all when it is missing.', selector),
})

const nodeController = object({
  reconcilerPeriod: field('How often everything is compared, whatever has changed; 5m when it is missing.', duration),
  syncLabels: field('Whether automatic host endpoints have the labels of their nodes; Enabled when it is missing.', switched),
  leakGracePeriod: field(
    'How long an address must have been without its pod before it is taken back; 15m when it is missing, never when it is 0s.',
    duration,
  ),
  hostEndpoint: field(
    'Host endpoints that are made by themselves.',
    object({
      autoCreate: field('Whether there are any; Disabled when it is missing.', switched),
      createDefaultHostEndpoint: field('Whether each node has one for all its interfaces; Enabled when it is missing.', switched),
      templates: listed('Others, besides or instead.', hostEndpointTemplate, { most: 64 }),
    }),
  ),
})

const controllers = object({
  node: field('Nodes: labels, host endpoints, addresses that leaked.', nodeController),
  policy: field('Refused: there is no such controller.', reconciled),
  workloadEndpoint: field('Refused: there is no such controller.', reconciled),
  serviceAccount: field('Refused: there is no such controller.', reconciled),
  namespace: field('Refused: there is no such controller.', reconciled),
  loadBalancer: field(
    'Refused: there is no such controller.',
    object({ assignIPs: field('Who gets one.', word('AllServices', 'RequestedServicesOnly')) }),
  ),
})

export const controllersConfigurationSpec = object({
  logSeverityScreen: field(
    'What is logged: this and everything graver; Info when it is missing.',
    word('Debug', 'Info', 'Warning', 'Error', 'Fatal'),
  ),
  healthChecks: field('Whether health is served: Enabled alone, as the probes of the pod ask.', switched),
  prometheusMetricsPort: field('0 alone: the port of /metrics is an option of the program.', integer(0, 65_535)),
  controllers: field('What each controller does.', controllers),
})
