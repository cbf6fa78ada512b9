// SPDX-License-Identifier: Apache-2.0
/** Prints what the agent would say of the firewalls of the namespace that this runs in, as JSON. Layer: test. */
import { toolRunner } from '#lib/base/os/run-tool.ts'
import { findFirewalls } from '#agent/node/firewall/detect.ts'
import { legacyTables } from '#agent/node/firewall/legacy.ts'
import { ownDevices } from '#agent/node/firewall/pod-devices.ts'
import { HANG_MS } from '../../testkit/base/hang.ts'

const run = toolRunner({ timeoutMs: HANG_MS })
// as before Linux 5.10, where more of what is ours meets them
console.log(JSON.stringify(await findFirewalls({ run, legacyTables, pods: [ownDevices('npl')], forwards: true })))
