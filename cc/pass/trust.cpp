// SPDX-License-Identifier: MIT
//
// What the pass cannot count, or cannot make safe. Untrusted code is refused for it; other code
// gets warnings.
//
//   inline assembly     may loop without a check, or make system calls
//   system calls        reach the kernel past every capability
//   thread-local data   a task changes threads at a check, and then sees another copy
//   externals           untrusted code calls what the list allows, and nothing else
//   names               nobody defines what checks use, or takes the address of setjmp
//   ways around         see detour.cpp
#include "cc/pass/names.h"
#include "cc/pass/steps.h"
#include "cc/pass/versions.h"

#include <llvm/ADT/StringSet.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/LineIterator.h>
#include <llvm/Support/MemoryBuffer.h>

using namespace llvm;

namespace janus
{

// The externals that untrusted code may use: a name in each line, then the reason. `prefix*` allows
// all names that begin so, `#` begins a comment.
class AllowList
{
  public:
    // False if the file cannot be read.
    bool read(const std::string &path)
    {
        auto file = MemoryBuffer::getFile(path);
        if (!file) return false;
        for (line_iterator line(**file, true, '#'); !line.is_at_end(); ++line) {
            StringRef name = line->ltrim().take_until([](char c) { return c == ' ' || c == '\t'; });
            if (name.empty()) continue;
            if (name.back() == '*')
                prefixes.push_back(name.drop_back().str());
            else
                names.insert(name);
        }
        return true;
    }

    bool allows(StringRef name) const
    {
        if (names.count(name)) return true;
        for (const std::string &prefix : prefixes)
            if (startsWith(name, prefix)) return true;
        return false;
    }

  private:
    StringSet<>                 names;
    SmallVector<std::string, 4> prefixes;
};

class Judge
{
  public:
    Judge(Module &forModule, const Options &forOptions) : module(forModule), options(forOptions) {}

    void judgeAssembly();
    void judgeThreadLocals();
    void judgeExternals();
    void judgeNames();

  private:
    void judgeDefinition(const GlobalValue &value);
    void say(const Instruction *where, const Function *function, const Twine &text, bool refuse)
    {
        complain(module, where, function, text, refuse);
    }
    void judgeExternal(const GlobalValue &external, const AllowList &list, bool limited);

    Module        &module;
    const Options &options;
};

void complain(Module &module, const Instruction *where, const Function *function, const Twine &text,
              bool refuse)
{
    DiagnosticSeverity severity = refuse ? DS_Error : DS_Warning;
    LLVMContext       &context = module.getContext();
    if (!function) function = where ? where->getFunction() : nullptr;
    if (!function) {
        std::string message = (module.getSourceFileName() + ": " + text).str();
        context.diagnose(DiagnosticInfoInlineAsm(message, severity));
        return;
    }
    DiagnosticLocation place;
    if (where) place = DiagnosticLocation(where->getDebugLoc());
    context.diagnose(DiagnosticInfoUnsupported(*function, text, place, severity));
}

void Judge::judgeAssembly()
{
    bool refuse = options.untrusted;
    if (!refuse && !options.warnAsm) return;
    const char *why = refuse
                          ? "untrusted code must not contain inline assembly, which nobody counts"
                          : "inline assembly is not counted: a loop in it keeps its worker "
                            "[-Wjanus-asm]";
    if (!module.getModuleInlineAsm().empty()) say(nullptr, nullptr, why, refuse);
    for (Function &function : module) {
        if (function.hasFnAttribute(Attribute::Naked)) say(nullptr, &function, why, refuse);
        for (Instruction &instruction : instructions(function)) {
            auto *call = dyn_cast<CallBase>(&instruction);
            if (!call || !call->isInlineAsm()) continue;
            if (cast<InlineAsm>(call->getCalledOperand())->getAsmString().empty()) continue;
            if (call->getMetadata("srcloc")) // clang knows the place also without -g
                module.getContext().diagnose(
                    DiagnosticInfoInlineAsm(*call, why, refuse ? DS_Error : DS_Warning));
            else
                say(call, &function, why, refuse);
        }
    }
}

const Instruction *firstUse(const Value &value)
{
    SmallVector<const Value *, 8> todo{&value};
    for (unsigned looked = 0; !todo.empty() && looked < 64; looked++) {
        const Value *next = todo.pop_back_val();
        if (auto *instruction = dyn_cast<Instruction>(next)) return instruction;
        if (next == &value || (isa<Constant>(next) && !isa<GlobalValue>(next)))
            todo.append(next->user_begin(), next->user_end());
    }
    return nullptr;
}

void Judge::judgeThreadLocals()
{
    bool refuse = options.untrusted;
    if (!refuse && !options.warnThreadLocal) return;
    for (GlobalVariable &variable : module.globals()) {
        if (!variable.isThreadLocal() || variable.getName() == "janus_fuel") continue;
        if (variable.isDeclaration() && variable.use_empty()) continue;
        std::string name = variable.getName().str();
        if (refuse)
            say(firstUse(variable), nullptr,
                "untrusted code must not use thread-local data: " + name +
                    " belongs to whichever thread runs the task",
                true);
        else
            say(firstUse(variable), nullptr,
                "a task may change threads at each check, and then sees another copy of " + name +
                    " [-Wjanus-thread-local]",
                false);
    }
}

void Judge::judgeExternal(const GlobalValue &external, const AllowList &list, bool limited)
{
    StringRef          name = external.getName();
    const Instruction *use = firstUse(external);
    if (name == "syscall" || name == "__syscall" || name == "vsyscall")
        say(use, nullptr, "untrusted code must not make system calls by " + name, true);
    else if (limited && !list.allows(name))
        say(use, nullptr,
            "untrusted code must not use " + name + ", which " + options.allow +
                " does not allow; if it is in another file of the same code, compile both as one",
            true);
}

void Judge::judgeExternals()
{
    if (!options.untrusted) return;
    AllowList list;
    bool      limited = !options.allow.empty();
    if (limited && !list.read(options.allow))
        module.getContext().emitError("cannot read the list of allowed externals, " +
                                      options.allow);
    for (Function &function : module)
        if (function.isDeclaration() && !function.isIntrinsic() && !function.use_empty())
            judgeExternal(function, list, limited);
    for (GlobalVariable &variable : module.globals())
        if (variable.isDeclaration() && !variable.use_empty() && !variable.isThreadLocal())
            judgeExternal(variable, list, limited);
}

StringRef plainName(const GlobalValue &value)
{
    StringRef name = value.getName();
    return startsWith(name, "\1") ? name.drop_front() : name; // an asm label
}

// What checks use. A definition of the program's own would be used instead of the runtime's.
static bool isOfChecks(StringRef name)
{
    return name == "janus_fuel" || name == "janus_check_stub" || name == "janus_strip_slow" ||
           name == "janus_check_or_end_slow" || name == "janus_check_slow" || name == "janus_op" ||
           name == "janus_hold_begin" || name == "janus_hold_end" || name == "janus_hold_pass" ||
           startsWith(name, "janus_cc_");
}

const Function *definedFunction(const GlobalValue &value)
{
    auto *function = dyn_cast<Function>(&value);
    return function && !function->isDeclaration() ? function : nullptr;
}

void Judge::judgeDefinition(const GlobalValue &value)
{
    StringRef   name = plainName(value);
    std::string quoted = ("the name " + name).str();
    if (startsWith(name, "janus.")) {
        say(firstUse(value), definedFunction(value), quoted + " belongs to the marks of janusrt cc",
            true);
        return;
    }
    if (value.isDeclaration()) {
        if (name == "janus_fuel" && (!value.isThreadLocal() || value.getName() != name))
            say(firstUse(value), nullptr, quoted + " belongs to a thread-local word", true);
        return;
    }
    if (isOfChecks(name))
        say(nullptr, definedFunction(value), quoted + " belongs to the runtime: checks call it",
            true);
    else if (options.untrusted && startsWith(name, "janus_") && !value.hasLocalLinkage())
        say(nullptr, definedFunction(value), "untrusted code must not define " + name, true);
}

// LLVM 14 casts a function that is called by another type than it was declared with.
static bool isCastForCalls(const User &user)
{
    auto *cast = dyn_cast<ConstantExpr>(&user);
    if (!cast || !cast->isCast()) return false;
    for (const Use &use : cast->uses()) {
        auto *call = dyn_cast<CallBase>(use.getUser());
        if (!call || !call->isCallee(&use)) return false;
    }
    return true;
}

void Judge::judgeNames()
{
    for (const GlobalValue &value : module.global_values()) judgeDefinition(value);
    for (const Function &function : module) {
        if (!isTwiceName(plainName(function))) continue;
        for (const Use &use : function.uses()) {
            auto *call = dyn_cast<CallBase>(use.getUser());
            if (call && call->isCallee(&use)) continue;
            if (isCastForCalls(*use.getUser())) continue;
            say(dyn_cast<Instruction>(use.getUser()), nullptr,
                "the address of " + plainName(function) +
                    " must not be taken: payments could be lost where it returns twice",
                true);
            break;
        }
    }
}

void checkTrust(Module &module, ModuleAnalysisManager &analyses, const Options &options)
{
    Judge judge(module, options);
    judge.judgeAssembly();
    judge.judgeThreadLocals();
    judge.judgeExternals();
    judge.judgeNames();
    if (options.untrusted) judgeWaysAround(module, analyses);
}

} // namespace janus
