// SPDX-License-Identifier: Apache-2.0
/** Takes one thing of the agent's away, as another program might, and waits until it is back. To be run on a node of a
 * lab; writes the ms that took to standard output. Layer: bench. */
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { BpfLink, BpfMap, BpfProgram, ifindexOf, tcDetach, tcQuery } from '#native'
import { DEFAULT_PIN_DIR } from '#agent/maps/catalogue.ts'
import { systemClock } from '#lib/base/clock.ts'
import { InternalError } from '#lib/base/errors.ts'

/** as long as a round of all tables, and half of that again */
const LONGEST_MS = 90_000
const POLL_MS = 5
const FORWARDING = '/proc/sys/net/ipv4/ip_forward'

interface Removal {
  remove(): void
  isBack(): boolean
}

/** The device by which a node is in its network. */
const UNDERLAY = 'eth0'
/** that announces the tunnel's port, and must never be up without the filter that drops all */
const TUNNEL = 'netplane-vxlan'

const SCHED_CLS = 3
/** `r0 = TC_ACT_UNSPEC; exit` */
const PASS = Buffer.from('b7000000ffffffff9500000000000000', 'hex')

const removals = {
  link: (): Removal => {
    const path = join(DEFAULT_PIN_DIR, 'links', `${UNDERLAY}:ingress`)
    return {
      remove: () => {
        const link = BpfLink.openPin(path)
        link.detach()
        link.close()
      },
      isBack: () => existsSync(path) && linkAt(path).ifindex !== 0,
    }
  },
  filter: (): Removal => ({
    remove: () => {
      tcDetach(tunnelFilter())
    },
    isBack: () => tcQuery(tunnelFilter()) !== undefined,
  }),
  program: (): Removal => {
    const link = BpfLink.openPin(join(DEFAULT_PIN_DIR, 'links', `${UNDERLAY}:ingress`))
    const { programId } = link.info()
    return {
      remove: () => {
        link.update(BpfProgram.load({ type: SCHED_CLS, instructions: PASS, license: 'GPL' }))
      },
      isBack: () => link.info().programId === programId,
    }
  },
  device: (): Removal => ({
    remove: () => {
      execFileSync('ip', ['link', 'del', TUNNEL])
    },
    isBack: () => {
      const isUp = ifindexOf(TUNNEL) !== 0 && execFileSync('ip', ['link', 'show', 'dev', TUNNEL, 'up']).length > 0
      if (isUp && tcQuery(tunnelFilter()) === undefined) throw new InternalError(`${TUNNEL} is up and lets packets in`)
      return isUp
    },
  }),
  'link-pin': () => ofFile(join(DEFAULT_PIN_DIR, 'links', `${UNDERLAY}:egress`)),
  'program-pin': () => {
    const folder = join(DEFAULT_PIN_DIR, 'programs')
    const pins = (): string[] => readdirSync(folder).flatMap((generation) => readdirSync(join(folder, generation)))
    const before = pins().length
    return {
      remove: () => {
        const [generation = ''] = readdirSync(folder)
        rmSync(join(folder, generation, 'tc-np_tail'))
      },
      isBack: () => pins().length === before && pins().includes('tc-np_tail'),
    }
  },
  'map-pin': () => ofFile(join(DEFAULT_PIN_DIR, 'maps/np_ct')),
  frontend: () => ofRow('np_frontends'),
  address: () => ofRow('np_addrs'),
  route: () => {
    const routes = (): string[] => execFileSync('ip', ['route', 'show', 'proto', '80'], { encoding: 'utf8' }).split('\n').filter(Boolean)
    const [first = ''] = routes()
    return {
      remove: () => {
        execFileSync('ip', ['route', 'del', ...first.split(' ').slice(0, 1)])
      },
      isBack: () => routes().includes(first),
    }
  },
  sysctl: () => ({
    remove: () => {
      writeFileSync(FORWARDING, '0')
    },
    isBack: () => readFileSync(FORWARDING, 'utf8').trim() === '1',
  }),
} as const satisfies Readonly<Record<string, () => Removal>>

export type RemovalName = keyof typeof removals

/** A link's pin; the pin of a map. */
function ofFile(path: string): Removal {
  return {
    remove: () => {
      rmSync(path)
    },
    isBack: () => existsSync(path),
  }
}

function tunnelFilter() {
  return { ifindex: ifindexOf(TUNNEL), direction: 'ingress', handle: 1, priority: 1 } as const
}

function linkAt(path: string): { readonly ifindex: number } {
  const link = BpfLink.openPin(path)
  try {
    return link.info()
  } finally {
    link.close()
  }
}

/** Any row: the table's first. */
function ofRow(name: string): Removal {
  const map = BpfMap.openPin(join(DEFAULT_PIN_DIR, 'maps', name))
  const key = map.nextKey(undefined)
  if (key === undefined) throw new InternalError(`${name} has no row`)
  return {
    remove: () => {
      map.delete(key)
    },
    isBack: () => map.lookup(key) !== undefined,
  }
}

async function main(name: string): Promise<void> {
  const made = Object.entries(removals).find(([known]) => known === name)
  if (made === undefined) throw new InternalError(`no removal ${name}: ${Object.keys(removals).join(', ')}`)
  const removal = made[1]()
  removal.remove()
  const start = systemClock.now()
  while (!removal.isBack()) {
    if (systemClock.now() - start > LONGEST_MS) throw new InternalError(`${name} is not back after ${LONGEST_MS} ms`)
    await systemClock.sleep(POLL_MS, new AbortController().signal)
  }
  process.stdout.write(`${systemClock.now() - start}\n`)
}

await main(process.argv[2] ?? '')
