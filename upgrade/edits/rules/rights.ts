// SPDX-License-Identifier: Apache-2.0
/** Edits of accounts, roles and their bindings. Layer: upgrade (pure). */
import { left, refused } from '../edit.ts'
import { rule, unlessGone, type EditRule } from '../rule.ts'
import { accountSecret, metadataRules } from './pods.ts'

export const RIGHTS_RULES: readonly EditRule[] = [
  rule('imagePullSecrets[*]', unlessGone(left('it is not there'), accountSecret)),
  rule('rules', left('rights are those that this version needs')),
  rule(
    'subjects[*]',
    unlessGone(left('accounts of this version have what they need'), () =>
      refused('roles are for accounts of this version alone', 'Bind the other account to a role of its own.'),
    ),
  ),
  ...metadataRules,
]
