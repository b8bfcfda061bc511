// SPDX-License-Identifier: MIT
//
// The code that pays.
//
// The word janus_fuel is never negative while a task runs. So the subtraction borrows if and only
// if the word does not hold the cost: `sub $c, %fs:janus_fuel; jb slow` on x86-64.
//
// On AArch64 LLVM keeps the thread pointer in a register, also across calls. After a yield the task
// may be on another thread, and would count down a stranger's word. So there every access is an
// assembly statement of its own, which reads the thread pointer again.
#ifndef JANUSRT_CC_PAY_H
#define JANUSRT_CC_PAY_H

#include "cc/pass/options.h"

#include <llvm/IR/IRBuilder.h>

namespace janus
{

// A payment of more ops is divided, so that a task that ends there has no more left.
enum : uint64_t { paidAtOnceMax = 1024 };

class Payer
{
  public:
    Payer(llvm::Module &module, const Options &options);

    // Pays `cost` before `at`. `fuel` is the variable that holds the fuel there; null: the word
    // does.
    void pay(llvm::Instruction *at, llvm::Value *cost, llvm::AllocaInst *fuel);

    // Pays for a strip: `request` is the call that stripRequest made. Its result becomes the number
    // of rounds that were paid.
    void payStrip(llvm::CallInst *request, llvm::AllocaInst *fuel);

    // Adds ops to the word, in place of a call that sinkMarks made.
    void giveBack(llvm::CallInst *credit, uint64_t ops);

    void takeWord(llvm::Instruction *at, llvm::AllocaInst *fuel); // from the word to the variable
    void giveWord(llvm::Instruction *at, llvm::AllocaInst *fuel); // and back

  private:
    void         payOnce(llvm::Instruction *at, llvm::Value *cost, llvm::AllocaInst *fuel);
    llvm::Value *load(llvm::IRBuilder<> &builder);
    void         store(llvm::IRBuilder<> &builder, llvm::Value *value);
    llvm::Value *take(llvm::IRBuilder<> &builder, llvm::Value *cost); // returns what the word held
    llvm::Value *armOffset(llvm::IRBuilder<> &builder);
    llvm::CallInst *createSlow(llvm::IRBuilder<> &builder, llvm::Value *cost);
    void            callSlow(llvm::IRBuilder<> &builder, llvm::Value *cost, llvm::AllocaInst *fuel);
    void            jumpSlow(llvm::IndirectBrInst *jump, llvm::Value *borrows, llvm::Value *cost,
                             llvm::AllocaInst *fuel);

    llvm::Module         &module;
    llvm::LLVMContext    &context;
    llvm::Type           *word;
    llvm::MDNode         *unlikely;
    llvm::GlobalVariable *variable; // janus_fuel
    bool                  arm, localExec;
};

// A request to pay for up to `rounds` rounds of `cost` each. Payer::payStrip replaces it.
llvm::CallInst *stripRequest(llvm::IRBuilder<> &builder, llvm::Value *rounds, uint64_t cost);
llvm::CallInst *asStripRequest(llvm::Instruction &instruction);

} // namespace janus

#endif
