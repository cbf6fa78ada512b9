import { setUpNamespace } from '../../test/kernel/packet-runner.ts'
import { Node } from './node.ts'
import { Wrapper } from './wrapper.ts'
import { families as F } from '../../test/kernel/packets/world.ts'
const allFamilies=()=>F
import { establishedStories, newStories } from './stories.ts'
import { newTallies, measureNew, measureEstablished, figureOf, undoCost } from './measure.ts'
setUpNamespace()
const [want='', rounds='20'] = process.argv.slice(2)
const node = await Node.load({ redirectPeer: true, redirectNeigh: true, coarseClock: true }, 512000)
const wrapper = await Wrapper.load(50)
const bench = { node, wrapper, rounds: Number(rounds) }
const est = allFamilies().flatMap(establishedStories)
for (const s of est) for (const o of s.opening) node.program(o.program).testRun({ data: o.packet })
const undo = undoCost(bench, est[0]!.hooks[0]!.packet)
for (const s of [...est, ...allFamilies().flatMap(newStories)].filter(s => new RegExp(want).test(s.id))) {
  const t = newTallies(s); let made
  for (let r = 0; r < bench.rounds; r++) {
    if (s.id.includes('.new')) { measureNew(bench, t, { count: 30000, step: 0 }); made ??= await node.flows(); node.forget(made) }
    else for (const x of t) measureEstablished(bench, x, 20000)
  }
  if (process.env.SERIES) for (const x of t) console.log(x.hook.program, x.programs.map(Math.round).join(" "))
  const f = figureOf(s, t, undo)
  console.log(s.id.padEnd(24), Math.round(f.net), Math.round(f.median), f.hooks.map(h=>h.program+' '+Math.round(h.net)).join(' + '), 'medians', t.map(x=>Math.round([...x.programs].sort((a,b)=>a-b)[x.programs.length>>1]!)).join(' + '))
}
