// SPDX-License-Identifier: MIT
//
// Marks and names: what the two halves of the pass, and the runtime, have agreed on.
//
// A mark says "here an op is due". It is a volatile store of the cost to the symbol janus.op, which
// nobody defines. The optimiser may not drop, double or reorder it, and may still inline, unroll
// and hoist what is around it. The second half replaces every mark by a payment. If that half did
// not run, the link fails, because the symbol does not exist.
#ifndef JANUSRT_CC_NAMES_H
#define JANUSRT_CC_NAMES_H

#include <llvm/ADT/StringRef.h>

#include <cstdint>

namespace llvm
{
class CallBase;
class Function;
class Instruction;
class Module;
class StoreInst;
class TargetLibraryInfo;
class Value;
} // namespace llvm

namespace janus
{

// Attributes that mark.cpp gives to functions.
constexpr const char *attrQuick = "janus-quick";    // the function has no mark: it ends soon
constexpr const char *attrMarks = "janus-marks";    // how many marks its source has
constexpr const char *attrOwnOps = "janus-own-ops"; // JANUS_OWN_OPS

llvm::StoreInst *asMark(llvm::Instruction &instruction);
llvm::Value     *costOf(const llvm::StoreInst *mark);
bool             constantCost(const llvm::StoreInst *mark, uint64_t &cost);
void             putMark(llvm::Instruction *before, llvm::Value *cost);
void             putMark(llvm::Instruction *before, uint64_t cost);

// True for functions of the runtime, which charge their own prices.
bool isRuntimeName(llvm::StringRef name);

// Calls of functions with such names cost nothing: the runtime's, and casts like std::move.
bool isFreeName(llvm::StringRef name);

// Intrinsics that jump, or that call a coroutine: they are calls.
bool isJump(const llvm::CallBase &call);

// setjmp and the like, whatever their declaration says.
bool isTwiceName(llvm::StringRef name);
bool returnsTwice(const llvm::CallBase &call);
bool anyReturnsTwice(llvm::Function &function);

// True if the call costs an op.
bool isCounted(const llvm::CallBase &call);

// True for intrinsics and inline assembly behind which no other code of the program runs.
bool isPlain(const llvm::CallBase &call);

// True if nobody looks at the word during the call, and the call ends soon. What is owed can then
// be paid after the call.
bool isQuick(const llvm::CallBase &call, const llvm::TargetLibraryInfo &library);

// True if an exception may leave the function through this call. A payment must not move across it:
// the marks behind the call may never run.
bool mayThrowOut(const llvm::CallBase &call);

// True for functions whose result is the thread's own, although they are declared const.
bool isThreadIdentity(llvm::StringRef name);

} // namespace janus

#endif
