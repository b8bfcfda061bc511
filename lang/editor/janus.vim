" SPDX-License-Identifier: MIT
" Vim syntax of Janus. Copy it to ~/.vim/syntax/janus.vim, and put this line into
" ~/.vim/ftdetect/janus.vim:  au BufRead,BufNewFile *.jan set filetype=janus
if exists("b:current_syntax")
  finish
endif

syn keyword janusKeyword     func async actor interface struct let var return defer do end
syn keyword janusConditional if else
syn keyword janusRepeat      for in while loop break continue
syn keyword janusConcurrent  nursery with spawn with_cap await yield cancel channel
syn keyword janusOperator    and or not try
syn keyword janusBoolean     true false
syn keyword janusType        i8 i16 i32 i64 u8 u16 u32 u64 bool f64 str fn task
syn keyword janusCapability  CapSpawn CapBudget CapChannel CapExecutor Budget Supervisor
syn match   janusError       "\<error\.\h\w*"
syn match   janusMember      "\.\h\w*"
syn match   janusFunction    "\(\<func\s\+\)\@<=\h\w*"
syn match   janusNumber      "\<\d[0-9_]*\(KB\|MB\|GB\)\?\>"
syn match   janusFloat       "\<\d[0-9_]*\.\d[0-9_]*\([eE][-+]\?\d\+\)\?\>"
syn match   janusEscape      "\\[nt\"\\]" contained
syn region  janusString      start=+"+ skip=+\\.+ end=+"+ oneline contains=janusEscape
syn match   janusComment     "//.*$" contains=@Spell
syn match   janusPragma      "{\.\s*profile\s*:\s*:\?\h\w*\s*\.}"

hi def link janusKeyword     Keyword
hi def link janusConditional Conditional
hi def link janusRepeat      Repeat
hi def link janusConcurrent  Statement
hi def link janusOperator    Operator
hi def link janusBoolean     Boolean
hi def link janusType        Type
hi def link janusCapability  Structure
hi def link janusError       Exception
hi def link janusFunction    Function
hi def link janusNumber      Number
hi def link janusFloat       Float
hi def link janusEscape      SpecialChar
hi def link janusString      String
hi def link janusComment     Comment
hi def link janusPragma      PreProc

let b:current_syntax = "janus"
