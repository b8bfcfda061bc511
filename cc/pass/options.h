// SPDX-License-Identifier: MIT
//
// The options of the pass. The driver writes them into the environment variable JANUSRT_OPS, as
// words with commas between them.
#ifndef JANUSRT_CC_OPTIONS_H
#define JANUSRT_CC_OPTIONS_H

#include <string>

namespace janus
{

struct Options {
    std::string report;                 // report=FILE: facts are appended to this file
    std::string allow;                  // allow=FILE: the externals of untrusted code
    bool        untrusted = false;      // untrusted: refuse what nobody can count
    bool        wrap = false;           // wrap: unbounded library calls go to wrappers
    bool        naive = false;          // naive: one payment for each mark
    bool        verify = false;         // verify: run LLVM's verifier after each step
    bool        sharedRuntime = false;  // shared: the word is in a shared library
    bool        warnAsm = true;         // nowarn=asm
    bool        warnThreadLocal = true; // nowarn=thread-local
    bool        fold = true;            // off=fold, and so on; several with | between them
    bool        strip = true;
    bool        hoist = true;
    bool        registers = true; // off=register
    bool        delay = true;
    std::string wrong; // the first word that means nothing; empty if all are known
};

Options readOptions();

} // namespace janus

#endif
