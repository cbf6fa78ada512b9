// SPDX-License-Identifier: Apache-2.0
/** Link messages: what an interface is. Layer: agent/interfaces (pure). */
import { attributeString, attributeU32, decodeAttributes, encodeAttribute, encodeAttributeText, encodeAttributeU32 } from './message.ts'

export const RTM_NEWLINK = 16
export const RTM_DELLINK = 17
export const RTM_GETLINK = 18

/** Attributes a message may leave out are undefined: the receiver keeps what it knew. */
export interface LinkMessage {
  readonly index: number
  readonly up: boolean
  /** the carrier is there */
  readonly running: boolean
  readonly loopback: boolean
  readonly name: string | undefined
  readonly mtu: number | undefined
  /** "02:00:00:00:00:01"; of another length for some tunnels, empty for devices without a link-layer address */
  readonly mac: string | undefined
  /** driver kind as `ip -d link` shows it: "veth", "bond"; undefined for hardware */
  readonly kind: string | undefined
  /** index of the bridge, bond or VRF it is in; 0: none */
  readonly master: number
  /** the link's alias; undefined: it has none */
  readonly alias: string | undefined
  /** of a veth: index of its other end, in that end's network namespace */
  readonly peer: number
  /** number that this namespace has for that one; undefined: it is the same */
  readonly peerNetns: number | undefined
  /** of a VXLAN device alone */
  readonly vxlan: VxlanLink | undefined
}

export interface VxlanLink {
  /** of UDP, where its packets come in */
  readonly port: number
  /** it takes packets of any VNI ("external") */
  readonly external: boolean
}

const FAMILY_UNSPECIFIED = 0
const HEADER = 16
const IFF_UP = 0x1
const IFF_LOOPBACK = 0x8
const IFF_RUNNING = 0x40
const IFF_NOARP = 0x80
const IFF_MULTICAST = 0x1000
const IFLA_ADDRESS = 1
const IFLA_IFNAME = 3
const IFLA_MTU = 4
const IFLA_LINK = 5
const IFLA_MASTER = 10
const IFLA_LINKINFO = 18
const IFLA_IFALIAS = 20
const IFLA_NET_NS_FD = 28
const IFLA_EXT_MASK = 29
const IFLA_LINK_NETNSID = 37
const IFLA_INFO_KIND = 1
const IFLA_INFO_DATA = 2
const VETH_INFO_PEER = 1
const VXLAN_LEARNING = 7
const VXLAN_PORT = 15
const VXLAN_COLLECT_METADATA = 25
const RTEXT_FILTER_SKIP_STATS = 8

/** Payload of RTM_GETLINK for a dump without statistics. */
export function encodeLinkDump(): Buffer {
  return Buffer.concat([Buffer.alloc(HEADER), encodeAttributeU32(IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS)])
}

/** Payload of RTM_GETLINK for one: unlike a list it waits for what is under way with the carrier, from Linux 6.8 on. */
export function encodeLinkQuestion(name: string): Buffer {
  return Buffer.concat([encodeLinkDump(), encodeAttributeText(IFLA_IFNAME, name)])
}

/** Undefined for broken bytes and for messages of other families: a bridge says "port removed" by RTM_DELLINK too. */
export function decodeLink(payload: Buffer): LinkMessage | undefined {
  if (payload.length < HEADER || payload.readUInt8(0) !== FAMILY_UNSPECIFIED) return undefined
  const index = payload.readInt32LE(4)
  if (index <= 0) return undefined
  const flags = payload.readUInt32LE(8)
  const attributes = decodeAttributes(payload.subarray(HEADER))
  const info = decodeAttributes(attributes.get(IFLA_LINKINFO) ?? Buffer.alloc(0))
  const kind = attributeString(info, IFLA_INFO_KIND)
  return {
    index,
    up: (flags & IFF_UP) !== 0,
    running: (flags & IFF_RUNNING) !== 0,
    loopback: (flags & IFF_LOOPBACK) !== 0,
    name: attributeString(attributes, IFLA_IFNAME),
    mtu: attributeU32(attributes, IFLA_MTU),
    mac: macText(attributes.get(IFLA_ADDRESS)),
    kind,
    master: attributeU32(attributes, IFLA_MASTER) ?? 0,
    alias: attributeString(attributes, IFLA_IFALIAS),
    peer: attributeU32(attributes, IFLA_LINK) ?? 0,
    peerNetns: attributeU32(attributes, IFLA_LINK_NETNSID),
    vxlan: kind === 'vxlan' ? vxlanOf(info.get(IFLA_INFO_DATA)) : undefined,
  }
}

function vxlanOf(data: Buffer | undefined): VxlanLink | undefined {
  const attributes = decodeAttributes(data ?? Buffer.alloc(0))
  const port = attributes.get(VXLAN_PORT)
  if (port === undefined || port.length < 2) return undefined
  return { port: port.readUInt16BE(0), external: attributes.get(VXLAN_COLLECT_METADATA)?.[0] === 1 }
}

function macText(bytes: Buffer | undefined): string | undefined {
  return bytes === undefined ? undefined : Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(':')
}

/** One end of a veth, or a device without another. */
export interface NewLink {
  readonly name: string
  readonly mac: string
  readonly mtu: number
}

/** Payload of RTM_NEWLINK that makes both ends, neither of them up; the other one in the namespace of this file
 * descriptor. With the address given no service of the system puts one of its own there. */
export function encodeVeth(end: NewLink, peer: NewLink & { readonly netnsFd: number }): Buffer {
  const other = Buffer.concat([linkHeader({}), encodeEnd(peer), encodeAttributeU32(IFLA_NET_NS_FD, peer.netnsFd)])
  const info = [encodeAttributeText(IFLA_INFO_KIND, 'veth'), encodeAttribute(IFLA_INFO_DATA, encodeAttribute(VETH_INFO_PEER, other))]
  return Buffer.concat([linkHeader({}), encodeEnd(end), encodeAttribute(IFLA_LINKINFO, Buffer.concat(info))])
}

/** Payload of RTM_NEWLINK that makes a VXLAN device for packets of any VNI, not up. It learns and asks nothing:
 * no ARP, no groups. */
export function encodeVxlan({ name, mac, mtu }: NewLink, port: number): Buffer {
  const data = [
    encodeAttribute(VXLAN_COLLECT_METADATA, Uint8Array.of(1)),
    encodeAttribute(VXLAN_LEARNING, Uint8Array.of(0)),
    encodeAttribute(VXLAN_PORT, Uint8Array.of(port >> 8, port & 0xff)),
  ]
  const info = [encodeAttributeText(IFLA_INFO_KIND, 'vxlan'), encodeAttribute(IFLA_INFO_DATA, Buffer.concat(data))]
  const header = linkHeader({ flags: IFF_NOARP, change: IFF_NOARP | IFF_MULTICAST })
  return Buffer.concat([header, encodeEnd({ name, mac, mtu }), encodeAttribute(IFLA_LINKINFO, Buffer.concat(info))])
}

/** Payload of RTM_NEWLINK that sets an interface up, with this written on it. */
export function encodeLinkUp(index: number, alias?: string): Buffer {
  const header = linkHeader({ index, flags: IFF_UP })
  return alias === undefined ? header : Buffer.concat([header, encodeAttributeText(IFLA_IFALIAS, alias)])
}

/** Payload of RTM_DELLINK. */
export function encodeLinkRemoval(name: string): Buffer {
  return Buffer.concat([linkHeader({}), encodeAttributeText(IFLA_IFNAME, name)])
}

function encodeEnd({ name, mac, mtu }: NewLink): Buffer {
  return Buffer.concat([
    encodeAttributeText(IFLA_IFNAME, name),
    encodeAttribute(IFLA_ADDRESS, macBytes(mac)),
    encodeAttributeU32(IFLA_MTU, mtu),
  ])
}

/** Of the flags to change those given are set, the rest cleared; others stay. */
function linkHeader(of: { readonly index?: number; readonly flags?: number; readonly change?: number }): Buffer {
  const { index = 0, flags = 0, change = flags } = of
  const header = Buffer.alloc(HEADER)
  header.writeInt32LE(index, 4)
  header.writeUInt32LE(flags, 8)
  header.writeUInt32LE(change, 12)
  return header
}

/** The other way round. */
export function macBytes(text: string): Uint8Array {
  return Uint8Array.from(text.split(':'), (byte) => Number.parseInt(byte, 16))
}
