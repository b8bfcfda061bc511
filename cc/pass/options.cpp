// SPDX-License-Identifier: MIT
#include "cc/pass/options.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringRef.h>

#include <cstdlib>

using namespace llvm;

namespace janus
{

static bool turnOff(Options &options, StringRef steps)
{
    SmallVector<StringRef, 8> names;
    steps.split(names, '|');
    for (StringRef name : names) {
        if (name == "fold")
            options.fold = false;
        else if (name == "strip")
            options.strip = false;
        else if (name == "hoist")
            options.hoist = false;
        else if (name == "register")
            options.registers = false;
        else if (name == "delay")
            options.delay = false;
        else
            return false;
    }
    return true;
}

static bool readWord(Options &options, StringRef word)
{
    auto [key, value] = word.split('=');
    if (word == "untrusted")
        options.untrusted = true;
    else if (word == "wrap")
        options.wrap = true;
    else if (word == "naive")
        options.naive = true;
    else if (word == "verify")
        options.verify = true;
    else if (word == "shared")
        options.sharedRuntime = true;
    else if (word == "nowarn=asm")
        options.warnAsm = false;
    else if (word == "nowarn=thread-local")
        options.warnThreadLocal = false;
    else if (key == "report" && !value.empty())
        options.report = value.str();
    else if (key == "allow" && !value.empty())
        options.allow = value.str();
    else
        return key == "off" && turnOff(options, value);
    return true;
}

Options readOptions()
{
    Options                   options;
    const char               *text = getenv("JANUSRT_OPS");
    SmallVector<StringRef, 8> words;
    StringRef(text ? text : "").split(words, ',', -1, false);
    for (StringRef word : words)
        if (!readWord(options, word) && options.wrong.empty()) options.wrong = word.str();
    return options;
}

} // namespace janus
