// SPDX-License-Identifier: Apache-2.0
/** Makes a service of IPVS as kube-proxy does, by generic netlink: guests have no ipvsadm. Layer: test. */
import { NetlinkSocket } from '#native'
import { NetlinkExchange } from '#agent/interfaces/netlink/exchange.ts'
import { decodeAttributes, encodeAttribute, encodeAttributeText, encodeAttributeU32 } from '#agent/interfaces/netlink/message.ts'

const NETLINK_GENERIC = 16
const CONTROL_FAMILY = 16
const GET_FAMILY = 3
const FAMILY_ID = 1
const FAMILY_NAME = 2
const NEW_SERVICE = 1
const SERVICE = 1
const HEADER = 4
/** a list of attributes inside an attribute */
const NESTED = 0x8000

function header(command: number): Buffer {
  return Buffer.from([command, 1, 0, 0])
}

function short(value: number): Buffer {
  return Buffer.from([value & 255, value >> 8])
}

/** TCP at this address and port 443, with no backend yet. */
export function addIpvsService(address: readonly [number, number, number, number]): void {
  const socket = NetlinkSocket.open({ protocol: NETLINK_GENERIC })
  try {
    const exchange = new NetlinkExchange(socket)
    let family = 0
    const asked = Buffer.concat([header(GET_FAMILY), encodeAttributeText(FAMILY_NAME, 'IPVS')])
    exchange.request({ what: 'find IPVS', type: CONTROL_FAMILY, payload: asked }, ({ payload }) => {
      family = decodeAttributes(payload.subarray(HEADER)).get(FAMILY_ID)?.readUInt16LE(0) ?? 0
    })
    const service = [
      encodeAttribute(1, short(2)),
      encodeAttribute(2, short(6)),
      encodeAttribute(3, Uint8Array.of(...address, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
      encodeAttribute(4, Uint8Array.of(443 >> 8, 443 & 255)),
      encodeAttributeText(6, 'rr'),
      encodeAttribute(7, Uint8Array.of(0, 0, 0, 0, 255, 255, 255, 255)),
      encodeAttributeU32(8, 0),
      encodeAttribute(9, Uint8Array.of(255, 255, 255, 255)),
    ]
    const payload = Buffer.concat([header(NEW_SERVICE), encodeAttribute(SERVICE | NESTED, Buffer.concat(service))])
    exchange.request({ what: 'add a service of IPVS', type: family, payload })
  } finally {
    socket.close()
  }
}
