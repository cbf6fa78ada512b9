// SPDX-License-Identifier: Apache-2.0
/** What policy has to do with a flow that no policy judged. Layer: test. */
import type { CtValue } from '#agent/maps/shapes.ts'

export const NOT_JUDGED: Pick<CtValue, 'epoch' | 'egress_rule' | 'ingress_rule' | 'staged_egress_rule' | 'staged_ingress_rule' | 'device'> =
  { epoch: 0, egress_rule: 0, ingress_rule: 0, staged_egress_rule: 0, staged_ingress_rule: 0, device: 0 }
