// SPDX-License-Identifier: Apache-2.0
/** The plain evaluator behind the interface of the truth tables' runners. Layer: test. */
import { Evaluator } from '#lib/policy/evaluate.ts'
import { packetOf, storeOf } from './world.ts'

const refused = (text) => console.error(`refused: ${text}`)

export default {
  name: 'evaluator',
  load(state) {
    const { snapshot } = storeOf(state, refused)
    return { snapshot, evaluator: new Evaluator(snapshot) }
  },
  verdict(ctx, from, to, proto, port) {
    const packet = packetOf({ src: from.ip, dst: to.ip, proto, port })
    return { ingress: allows(ctx, to, packet, 'ingress'), egress: allows(ctx, from, packet, 'egress') }
  },
}

/** An end without addresses of its own is under no policy of pods. */
function allows({ snapshot, evaluator }, end, packet, direction) {
  const pod = end.ns === undefined ? undefined : snapshot.pods.get(`${end.ns}/${end.name}`)
  if (pod === undefined || pod.hostNetwork) return true
  return evaluator.pod(pod, packet, { direction }).action === 'allow'
}
