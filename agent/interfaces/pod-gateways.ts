// SPDX-License-Identifier: Apache-2.0
/** What pods send everything to: no device has these addresses, the programs answer for them.
 * Layer: agent/interfaces. */
import { parseAddr } from '#lib/base/ip.ts'

export const POD_GATEWAYS = { v4: parseAddr('169.254.1.1'), v6: parseAddr('fe80::1') } as const
