// SPDX-License-Identifier: Apache-2.0
/** Which file has an object, and when it is gone. Layer: test. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { FileContent } from '#lib/manifests/file.ts'
import { ObjectOwners } from '#lib/manifests/object-owners.ts'
import { refText } from '#lib/model/ref.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import type { SourceEvent } from '#lib/store/source.ts'
import { kubernetesPolicy, model, service } from '../../support/build.ts'

/** "a" or "a:81": a service and its port. */
function content(names: readonly string[], of: Partial<FileContent> = {}): FileContent {
  const objects = names.map((name) => model(service(name.split(':')[0] ?? '', { ports: [{ port: Number(name.split(':')[1] ?? 80) }] })))
  return { objects, unusable: new Map(), unsure: false, problems: [], ...of }
}

function show(events: readonly SourceEvent[]): string[] {
  return events.map((event) =>
    event.kind === 'delete'
      ? `-${event.ref.name}`
      : `+${event.object.name}${event.object.kind === 'Service' ? `:${event.object.ports[0]?.port ?? 0}` : ''}`,
  )
}

describe('a file', () => {
  test('gives its objects, and loses them only when settled', () => {
    const holdings = new ObjectOwners()
    expect(show(holdings.put('f', content(['a', 'b'])))).toEqual(['+a:80', '+b:80'])
    expect([show(holdings.put('f', content(['b:81']))), holdings.leaving]).toEqual([['+b:81', '+a:80'], 1])
    expect([show(holdings.settle()), holdings.leaving]).toEqual([['-a', '+b:81'], 0])
    expect(show(holdings.put('f'))).toEqual(['+b:81'])
    expect([show(holdings.settle()), holdings.files]).toEqual([['-b'], 0])
  })

  test('that comes back in time loses nothing', () => {
    const holdings = new ObjectOwners()
    holdings.put('f', content(['a']))
    holdings.put('f')
    expect([show(holdings.put('f', content(['a:81']))), holdings.leaving, show(holdings.settle())]).toEqual([['+a:81'], 0, []])
  })

  test('keeps the last good version of what it cannot say', () => {
    const holdings = new ObjectOwners()
    holdings.put('f', content(['a', 'b', 'c']))
    holdings.put('f', content(['a'], { unusable: new Map([['Service/default/b', undefined]]) }))
    expect(show(holdings.settle())).toEqual(['-c', '+a:80', '+b:80'])
    holdings.put('f', content([], { unsure: true }))
    expect([holdings.leaving, holdings.holder('Service/default/a'), holdings.holder('Service/default/b')]).toEqual([0, 'f', 'f'])
  })

  test('closes what a bad policy selects only where there was no good one', () => {
    const good = model(kubernetesPolicy('p'))
    const closed = (name: string): KubeObject => ({ ...good, name, closed: true }) as KubeObject
    const bad = new Map(['p', 'q'].map((name) => [`KubernetesNetworkPolicy/default/${name}`, closed(name)]))
    const holdings = new ObjectOwners()
    holdings.put('f', { ...content([]), objects: [good] })
    const state = (events: readonly SourceEvent[]): string[] =>
      events.map((event) =>
        event.kind === 'upsert' ? `${event.object.name} ${'closed' in event.object ? 'closed' : 'good'}` : `-${event.ref.name}`,
      )
    expect(state(holdings.put('f', content([], { unusable: bad })))).toEqual(['q closed', 'p good'])
    expect(state(holdings.put('f', { ...content([]), objects: [{ ...good, name: 'q' }] }))).toEqual(['q good', 'p good'])
    expect(state(holdings.settle())).toEqual(['-p', 'q good'])
    holdings.put('f')
    holdings.settle()
    expect(state(holdings.put('f', content([], { unusable: bad })))).toEqual(['p closed', 'q closed'])
    expect(state(holdings.put('f', content([], { unusable: bad })))).toEqual(['p closed', 'q closed'])
    expect(state(holdings.put('g', content([], { unusable: bad })))).toEqual([])
  })

  test('takes nothing with it when the whole directory goes', () => {
    const holdings = new ObjectOwners()
    holdings.put('f', content(['a']))
    holdings.put('f')
    holdings.keepLeaving()
    expect([show(holdings.settle()), holdings.holder('Service/default/a'), [...holdings.fileNames()]]).toEqual([[], 'f', ['f']])
  })
})

describe('two files with the same object', () => {
  test('the first name has it, in whatever order they came', () => {
    const holdings = new ObjectOwners()
    expect(show(holdings.put('g', content(['a:2'])))).toEqual(['+a:2'])
    expect(show(holdings.put('f', content(['a:1'])))).toEqual(['+a:1'])
    expect(show(holdings.put('g', content(['a:3'])))).toEqual([])
    expect(holdings.conflicts()).toEqual([
      { file: 'g', rejected: { ref: 'Service/default/a', path: '', reason: 'is already defined in f' } },
    ])
    holdings.put('f')
    expect([show(holdings.settle()), holdings.conflicts(), holdings.holder('Service/default/a')]).toEqual([['+a:3'], [], 'g'])
  })

  test('what is in force does not depend on the way there', () => {
    const step = fc.record({
      file: fc.constantFrom('f', 'g', 'h'),
      names: fc.subarray(['a:1', 'b:1', 'c:1', 'd:1']),
      port: fc.integer({ min: 1, max: 3 }),
      settle: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
        const holdings = new ObjectOwners()
        const inForce = new Map<string, string>()
        const apply = (events: readonly SourceEvent[]): void => {
          for (const event of events) {
            if (event.kind === 'delete') inForce.delete(refText(event.ref))
            else inForce.set(refText(event.object), show([event])[0] ?? '')
          }
        }
        const files = new Map<string, FileContent>()
        for (const { file, names, port, settle } of steps) {
          const now = content(names.map((name) => name.replace('1', String(port))))
          files.set(file, now)
          apply(holdings.put(file, now))
          if (settle) apply(holdings.settle())
        }
        apply(holdings.settle())
        const fresh = new Map<string, string>()
        for (const [, { objects }] of [...files].sort(([a], [b]) => (a < b ? 1 : -1)))
          for (const object of objects) fresh.set(refText(object), show([{ kind: 'upsert', object }])[0] ?? '')
        expect(new Map([...inForce].sort())).toEqual(new Map([...fresh].sort()))
      }),
    )
  })
})
