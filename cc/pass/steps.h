// SPDX-License-Identifier: MIT
//
// The steps of the pass, in the order in which they run.
#ifndef JANUSRT_CC_STEPS_H
#define JANUSRT_CC_STEPS_H

#include "cc/pass/options.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/IR/PassManager.h>

#include <cstdint>

namespace llvm
{
class AllocaInst;
class BasicBlock;
class CallBase;
class CallInst;
class Function;
class GlobalValue;
class Instruction;
class Module;
class TargetLibraryInfo;
class Twine;
class Value;
} // namespace llvm

namespace janus
{

// What --report tells about a function.
struct Facts {
    unsigned folded = 0;     // loops that are paid before they begin
    unsigned stripped = 0;   // loops that are paid in strips
    unsigned inRegister = 0; // loops that keep the fuel in a register
    unsigned quick = 0;      // calls without a payment before them
};

// An edge of the control-flow graph.
struct Edge {
    llvm::BasicBlock *from, *to;
};

// All retreating edges of a depth-first walk from the entry. Every cycle has one.
llvm::SmallVector<Edge, 16> retreatingEdges(llvm::Function &function);

// A new block on all edges between two blocks. The terminator must be a branch or a switch, or the
// edge the normal one of an invoke.
llvm::BasicBlock *splitEdge(llvm::BasicBlock *from, llvm::BasicBlock *to);

// mark.cpp: functions with the attribute JANUS_NO_OPS or JANUS_OWN_OPS; puts marks, and gives calls
// to wrappers.
llvm::SmallPtrSet<const llvm::Function *, 8> freeFunctions(const llvm::Module &module);
llvm::SmallPtrSet<const llvm::Function *, 8> ownFunctions(const llvm::Module &module);
void markModule(llvm::Module &module, llvm::ModuleAnalysisManager &analyses,
                const Options &options);

// wrap.cpp: calls that go to wrappers of the support library.
bool hasWrappers(); // false if the plugin was built without their list
bool isWrapped(llvm::StringRef name);
bool wrapCall(llvm::CallBase &call); // true if it now calls a wrapper
bool wrapsMemory(const llvm::CallBase &call, const llvm::Value *length);
void wrapMemory(llvm::CallBase &call); // the call may be replaced
void wrapPointers(llvm::Module &module);

// trips.cpp: loops whose number of rounds is known before they begin.
void payTrips(llvm::Function &function, llvm::FunctionAnalysisManager &analyses,
              const Options &options, Facts &facts);

// goto.cpp: handlers of an interpreter pay at their begin.
void            sinkMarks(llvm::Function &function, const llvm::TargetLibraryInfo &library);
llvm::CallInst *asCredit(llvm::Instruction &instruction); // a call that adds an op to the word

// place.cpp: moves marks together, decides where to pay, and pays.
void hoistMarks(llvm::Function &function);
void placePayments(llvm::Function &function, const llvm::TargetLibraryInfo &library,
                   const Options &options, Facts &facts);

// trust.cpp: what the pass cannot count. Reports errors in untrusted code, else warnings.
void checkTrust(llvm::Module &module, llvm::ModuleAnalysisManager &analyses,
                const Options &options);

// Clang prints the place of the instruction, or without -g that of the function.
void complain(llvm::Module &module, const llvm::Instruction *where, const llvm::Function *function,
              const llvm::Twine &text, bool refuse);
const llvm::Instruction *firstUse(const llvm::Value &value);
const llvm::Function    *definedFunction(const llvm::GlobalValue &value); // or null
llvm::StringRef          plainName(const llvm::GlobalValue &value);

// detour.cpp: how untrusted code could get around its checks. Reports errors.
void judgeWaysAround(llvm::Module &module, llvm::ModuleAnalysisManager &analyses);

// report.cpp: appends lines to the report.
void reportFunction(const llvm::Function &function, const Options &options, const Facts &facts);
void reportModule(llvm::Module &module, llvm::ModuleAnalysisManager &analyses,
                  const Options &options);

} // namespace janus

#endif
