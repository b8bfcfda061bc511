// SPDX-License-Identifier: MIT
//
// Calls of libraries that may take long, or that hold a lock, go to wrappers. The support library
// has them, and cc/support/wrapped.def lists them. The names change together with the marks, so
// that counts do not depend on the optimiser.
#include "cc/pass/names.h"
#include "cc/pass/steps.h"
#include "cc/pass/versions.h"

#include <llvm/ADT/StringSwitch.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

using namespace llvm;

namespace janus
{

enum : uint64_t {
    copyMax = 65536,   // a copy of a constant length up to this is paid by its mark
    compareMax = 4096, // a comparison of a constant length below this costs nothing
    stringMax = 64,    // a constant string shorter than this bounds the work
};

bool isWrapped(StringRef name)
{
    return StringSwitch<bool>(name)
#define JANUS_CC_WRAP(function, kind) .Case(#function, true)
#if __has_include("cc/support/wrapped.def")
#include "cc/support/wrapped.def"
#endif
#undef JANUS_CC_WRAP
        .Default(false);
}

bool hasWrappers() { return isWrapped("memcpy"); }

static bool isShortString(const Value *value)
{
    StringRef text;
    return value->getType()->isPointerTy() && getConstantStringInfo(value, text) &&
           text.size() < stringMax;
}

static bool isConstantBelow(const Value *value, uint64_t limit)
{
    auto *constant = dyn_cast<ConstantInt>(value);
    return constant && constant->getZExtValue() < limit;
}

// True if constants among the arguments bound the work of the call. The optimiser knows much about
// such calls, so they keep their names.
static bool isBounded(const CallBase &call, StringRef name)
{
    unsigned count = (unsigned)call.arg_size();
    int      strings = StringSwitch<int>(name) // bit i: argument i bounds the work
                      .Cases("strcmp", "strncmp", "strcasecmp", "strncasecmp", 3)
                      .Cases("strlen", "strnlen", "strchr", "strrchr", "strdup", 1)
                      .Cases("strcpy", "stpcpy", 2)
                      .Default(0);
    for (unsigned i = 0; i < count && i < 2; i++)
        if ((strings >> i & 1) && isShortString(call.getArgOperand(i))) return true;
    bool compares = name == "memcmp" || name == "bcmp" || name == "strncmp" ||
                    name == "strncasecmp" || name == "memchr";
    return compares && count >= 3 && isConstantBelow(call.getArgOperand(2), compareMax);
}

static FunctionCallee wrapperOf(Module &module, StringRef name, FunctionType *type)
{
    return module.getOrInsertFunction(("janus_cc_" + name).str(), type);
}

bool wrapCall(CallBase &call)
{
    Function *callee = call.getCalledFunction();
    if (!callee || !callee->isDeclaration() || !isWrapped(callee->getName()) ||
        callee->getFunctionType() != call.getFunctionType() || isBounded(call, callee->getName()))
        return false;
    bool quiet = call.doesNotThrow();
    call.setCalledFunction(
        wrapperOf(*call.getModule(), callee->getName(), callee->getFunctionType()));
    call.setAttributes(AttributeList()); // the plain function's promises are not the wrapper's
    if (quiet) call.setDoesNotThrow();
    return true;
}

bool wrapsMemory(const CallBase &call, const Value *length)
{
    if (auto *intrinsic = dyn_cast<MemIntrinsic>(&call))
        if (intrinsic->isVolatile() || intrinsic->getDestAddressSpace() != 0) return false;
    if (auto *transfer = dyn_cast<MemTransferInst>(&call))
        if (transfer->getSourceAddressSpace() != 0) return false;
    return !isConstantBelow(length, copyMax + 1);
}

void wrapMemory(CallBase &call)
{
    auto *intrinsic = dyn_cast<MemIntrinsic>(&call);
    if (!intrinsic) {
        wrapCall(call);
        return;
    }
    IRBuilder<> builder(&call);
    Type       *pointer = builder.getInt8Ty()->getPointerTo();
    Type       *size = builder.getInt64Ty();
    bool        fills = isa<MemSetInst>(call);
    StringRef   name = fills ? "memset" : isa<MemMoveInst>(call) ? "memmove" : "memcpy";
    Type       *second = fills ? builder.getInt32Ty() : pointer;
    auto       *type = FunctionType::get(pointer, {pointer, second, size}, false);
    Value      *from = call.getArgOperand(1);
    from = fills ? builder.CreateZExt(from, second) : builder.CreatePointerCast(from, pointer);
    CallInst *wrapper =
        builder.CreateCall(wrapperOf(*call.getModule(), name, type),
                           {builder.CreatePointerCast(call.getArgOperand(0), pointer), from,
                            builder.CreateZExtOrTrunc(intrinsic->getLength(), size)});
    wrapper->setDoesNotThrow();
    call.eraseFromParent();
}

// Untrusted code must not reach the plain functions through a pointer either.
void wrapPointers(Module &module)
{
    SmallVector<Function *, 16> found;
    for (Function &function : module)
        if (function.isDeclaration() && isWrapped(function.getName()) && !function.use_empty())
            found.push_back(&function);
    for (Function *function : found) {
        auto *wrapper = dyn_cast<Function>(
            wrapperOf(module, function->getName(), function->getFunctionType()).getCallee());
        if (!wrapper) continue;
        for (Use &use : make_early_inc_range(function->uses())) {
            auto *call = dyn_cast<CallBase>(use.getUser());
            if (call && call->isCallee(&use)) continue; // a bounded call
            if (auto *constant = dyn_cast<Constant>(use.getUser());
                constant && !isa<GlobalValue>(constant)) {
                constant->handleOperandChange(function, wrapper);
            } else {
                use.set(wrapper);
            }
        }
    }
}

} // namespace janus
