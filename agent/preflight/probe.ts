// SPDX-License-Identifier: Apache-2.0
/** Runs the probes of a group. Layer: agent. */
import { InternalError } from '#lib/base/errors.ts'
import { unreachable } from '#lib/base/result.ts'
import type { ProbeGroup } from '#lib/preflight/findings.ts'
import type { PreflightOptions } from './options.ts'
import type { Probed } from './probed.ts'

/** Each group is loaded when it is run: the endpoint needs no addon. */
export async function probe(group: ProbeGroup, options: PreflightOptions): Promise<Probed> {
  switch (group) {
    case 'kernel':
      return await (await import('#agent/preflight/kernel.ts')).probeKernel(options)
    case 'devices':
      return (await import('#agent/preflight/devices.ts')).probeDevices(options)
    case 'others':
      return await (await import('#agent/preflight/others.ts')).probeOthers(options)
    case 'endpoint': {
      const { endpoint } = options
      if (endpoint === undefined) throw new InternalError('no endpoint')
      return await (await import('#agent/preflight/endpoint.ts')).probeEndpoint({ ...options, endpoint })
    }
    case 'vxlan':
      return await (await import('#agent/preflight/vxlan/probe.ts')).probeVxlan(options)
    default:
      return unreachable(group)
  }
}
