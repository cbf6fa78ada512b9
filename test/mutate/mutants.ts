// SPDX-License-Identifier: Apache-2.0
/** Small faults put into a source, one at a time: of TypeScript by its tree, of C by its tokens. Layer: test (pure). */
import ts from 'typescript'

export interface Mutant {
  /** from 0 */
  readonly at: number
  readonly end: number
  readonly replacement: string
}

/** An operator, and the one that a slip of the hand would have put there. */
const OPERATORS: Readonly<Record<string, string>> = {
  '===': '!==',
  '!==': '===',
  '==': '!=',
  '!=': '==',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '&&': '||',
  '||': '&&',
}

/** In the order of the text. */
export function mutantsOfTypeScript(text: string): readonly Mutant[] {
  const file = ts.createSourceFile('file.ts', text, ts.ScriptTarget.Latest, true)
  const found: Mutant[] = []
  const replace = (node: ts.Node, replacement: string): void => {
    found.push({ at: node.getStart(file), end: node.getEnd(), replacement })
  }
  const visit = (node: ts.Node): void => {
    if (ts.isTypeNode(node)) return
    if (ts.isBinaryExpression(node)) {
      const other = OPERATORS[node.operatorToken.getText(file)]
      if (other !== undefined) replace(node.operatorToken, other)
    }
    if (node.kind === ts.SyntaxKind.TrueKeyword) replace(node, 'false')
    if (node.kind === ts.SyntaxKind.FalseKeyword) replace(node, 'true')
    if (ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.ExclamationToken) replace(node, node.operand.getText(file))
    if (ts.isConditionalExpression(node))
      replace(node, `${node.condition.getText(file)} ? ${node.whenFalse.getText(file)} : ${node.whenTrue.getText(file)}`)
    // a call whose result no one takes is there for what it does
    if (ts.isExpressionStatement(node) && ts.isCallExpression(node.expression)) replace(node, '')
    if (ts.isIfStatement(node) && node.elseStatement === undefined) replace(node, '')
    ts.forEachChild(node, visit)
  }
  visit(file)
  return found.toSorted((a, b) => a.at - b.at)
}

const SKIPPED = /\/\*[^]*?\*\/|\/\/.*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|^#.*(?:\\\n.*)*$|_Static_assert\([^;]*;/gm
const TOKENS = /===|!==|==|!=|<=|>=|<<|>>|->|&&|\|\||<|>|\btrue\b|\bfalse\b|!(?=[a-z(])/g
const WORDS: Readonly<Record<string, string>> = { ...OPERATORS, true: 'false', false: 'true', '!': '' }

/** Of C: outside of comments, texts and what is for the preprocessor. */
export function mutantsOfC(text: string): readonly Mutant[] {
  const plain = text.replaceAll(SKIPPED, (skipped) => skipped.replaceAll(/[^\n]/g, ' '))
  return [...plain.matchAll(TOKENS)].flatMap(({ 0: token, index }) => {
    const replacement = WORDS[token]
    return replacement === undefined ? [] : [{ at: index, end: index + token.length, replacement }]
  })
}

export function applied(text: string, { at, end, replacement }: Mutant): string {
  return text.slice(0, at) + replacement + text.slice(end)
}

/** "12: a && b → a || b": the line and what has become of it, for a list. */
export function described(text: string, mutant: Mutant): string {
  const line = text.slice(0, mutant.at).split('\n').length
  const was = text.slice(mutant.at, mutant.end).split('\n')[0] ?? ''
  const around = (text.split('\n')[line - 1] ?? '').trim()
  return `${line}: ${was} → ${mutant.replacement === '' ? 'nothing' : (mutant.replacement.split('\n')[0] ?? '')}, in: ${around}`
}
