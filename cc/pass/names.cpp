// SPDX-License-Identifier: MIT
#include "cc/pass/names.h"

#include "cc/pass/versions.h"
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

using namespace llvm;

namespace janus
{

static const char *const markName = "janus.op";

static GlobalVariable *markWord(Module &module)
{
    if (GlobalVariable *word = module.getGlobalVariable(markName)) return word;
    auto *word = new GlobalVariable(module, Type::getInt64Ty(module.getContext()), false,
                                    GlobalValue::ExternalLinkage, nullptr, markName);
    word->setDSOLocal(true);
    return word;
}

StoreInst *asMark(Instruction &instruction)
{
    auto *store = dyn_cast<StoreInst>(&instruction);
    if (!store || !store->isVolatile()) return nullptr;
    auto *word = dyn_cast<GlobalVariable>(store->getPointerOperand()->stripPointerCasts());
    return word && word->getName() == markName ? store : nullptr;
}

Value *costOf(const StoreInst *mark) { return const_cast<Value *>(mark->getValueOperand()); }

bool constantCost(const StoreInst *mark, uint64_t &cost)
{
    auto *constant = dyn_cast<ConstantInt>(mark->getValueOperand());
    if (!constant) return false;
    cost = constant->getZExtValue();
    return true;
}

void putMark(Instruction *before, Value *cost)
{
    IRBuilder<> builder(before);
    builder.CreateStore(cost, markWord(*before->getModule()), true);
}

void putMark(Instruction *before, uint64_t cost)
{
    putMark(before, ConstantInt::get(Type::getInt64Ty(before->getContext()), cost));
}

bool isRuntimeName(StringRef name)
{
    return startsWith(name, "janus_") && !startsWith(name, "janus_cc_"); // wrappers are calls
}

// std::move, std::forward and the like. Clang 15 and later make casts of them, so they cost nothing
// anywhere.
static bool isCastName(StringRef name)
{
    if (!startsWith(name, "_ZSt")) return false;
    for (const char *cast : {"_ZSt4move", "_ZSt7forward", "_ZSt9addressof", "_ZSt11__addressof",
                             "_ZSt8as_const", "_ZSt18move_if_noexcept"})
        if (startsWith(name, cast)) return true;
    return false;
}

// The allocation of a coroutine's frame, and its release. The optimiser may put the frame into the
// caller's, so these calls cost nothing anywhere.
static bool isOfFrame(const CallBase &call)
{
    for (const Use &argument : call.args())
        if (auto *intrinsic = dyn_cast<IntrinsicInst>(argument))
            if (intrinsic->getIntrinsicID() == Intrinsic::coro_size ||
                intrinsic->getIntrinsicID() == Intrinsic::coro_free)
                return true;
    return false;
}

bool isFreeName(StringRef name) { return isRuntimeName(name) || isCastName(name); }

bool isJump(const CallBase &call)
{
    auto *intrinsic = dyn_cast<IntrinsicInst>(&call);
    if (!intrinsic) return false;
    switch (intrinsic->getIntrinsicID()) {
    case Intrinsic::eh_sjlj_setjmp:
    case Intrinsic::eh_sjlj_longjmp:
    case Intrinsic::eh_return_i32:
    case Intrinsic::eh_return_i64:
    case Intrinsic::coro_resume:
    case Intrinsic::coro_destroy: return true;
    default: return false;
    }
}

bool returnsTwice(const CallBase &call)
{
    auto *intrinsic = dyn_cast<IntrinsicInst>(&call);
    if (intrinsic && intrinsic->getIntrinsicID() == Intrinsic::eh_sjlj_setjmp) return true;
    return call.hasFnAttr(Attribute::ReturnsTwice);
}

bool anyReturnsTwice(Function &function)
{
    for (BasicBlock &block : function)
        for (Instruction &instruction : block)
            if (auto *call = dyn_cast<CallBase>(&instruction))
                if (returnsTwice(*call)) return true;
    return false;
}

bool isTwiceName(StringRef name)
{
    return name == "setjmp" || name == "_setjmp" || name == "__setjmp" || name == "sigsetjmp" ||
           name == "__sigsetjmp" || name == "getcontext" || name == "swapcontext" ||
           name == "vfork" || name == "__vfork";
}

bool isCounted(const CallBase &call)
{
    if (isJump(call)) return true;
    if (isa<IntrinsicInst>(call) || call.isInlineAsm() || isOfFrame(call)) return false;
    const Function *callee = call.getCalledFunction();
    if (!callee) return true;
    bool cast = isCastName(callee->getName()) && call.arg_size() == 1 && !callee->isDeclaration();
    return !cast && !isRuntimeName(callee->getName());
}

// Intrinsics behind which other code of the program runs: a coroutine that suspends or is resumed,
// and clang's own setjmp.
static bool leaves(const IntrinsicInst &intrinsic)
{
    return intrinsic.getIntrinsicID() == Intrinsic::eh_sjlj_longjmp ||
           intrinsic.getIntrinsicID() == Intrinsic::eh_sjlj_setjmp ||
           startsWith(intrinsic.getCalledFunction()->getName(), "llvm.coro.");
}

bool isPlain(const CallBase &call)
{
    if (auto *intrinsic = dyn_cast<IntrinsicInst>(&call)) return !leaves(*intrinsic);
    return call.isInlineAsm();
}

// Functions of the C library that run no code of the program, and that programs hardly replace.
// Others may: operator new and malloc belong to many programs, and stdio calls the functions of
// fopencookie.
static bool isLeafOfLibrary(const Function &function)
{
    StringRef name = function.getName();
    if (name == "strdup" || name == "strndup" || name == "__strdup" || name == "__strndup")
        return false; // they call malloc
    if (function.getReturnType()->isFloatingPointTy()) return true;
    for (const char *prefix :
         {"mem",   "str",   "stp",    "__mem",   "__str",   "__stp",   "ato",  "bcmp",
          "bcopy", "bzero", "wcslen", "isdigit", "isascii", "toascii", "abs",  "labs",
          "llabs", "ffs",   "fls",    "htonl",   "htons",   "ntohl",   "ntohs"})
        if (startsWith(name, prefix)) return name != "memalign";
    return false;
}

bool isQuick(const CallBase &call, const TargetLibraryInfo &library)
{
    if (isa<IntrinsicInst>(call) || call.isInlineAsm()) return isPlain(call) && !isJump(call);
    if (call.isMustTailCall()) return false; // nothing can be paid after it
    if (call.hasFnAttr(Attribute::NoReturn)) return false;
    if (returnsTwice(call)) return false;
    const Function *callee = call.getCalledFunction();
    if (!callee) return false;
    if (callee->hasFnAttribute(attrQuick)) return true;
    LibFunc known;
    return callee->isDeclaration() && library.getLibFunc(*callee, known) &&
           isLeafOfLibrary(*callee);
}

bool mayThrowOut(const CallBase &call)
{
    return !isa<IntrinsicInst>(call) && !call.doesNotThrow() && !call.getFunction()->doesNotThrow();
}

bool isThreadIdentity(StringRef name)
{
    return name == "__errno_location" || name == "pthread_self" || name == "thrd_current" ||
           name == "__tls_get_addr" || name == "__h_errno_location" || name == "__ctype_b_loc" ||
           name == "__ctype_tolower_loc" || name == "__ctype_toupper_loc" || name == "gettid";
}

} // namespace janus
