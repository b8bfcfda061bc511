// SPDX-License-Identifier: MIT
//
// What a function owes: the sum of marks that were passed and not yet paid.
#ifndef JANUSRT_CC_OWED_H
#define JANUSRT_CC_OWED_H

#include "cc/pass/pay.h"

#include <llvm/ADT/SmallVector.h>

namespace janus
{

class Owed
{
  public:
    explicit Owed(llvm::Function &function);

    void add(llvm::Instruction *before, llvm::Value *cost);

    // Pays here all that is owed. `fuel` is the variable that holds the fuel here; null: the word.
    void settle(llvm::Instruction *before, llvm::AllocaInst *fuel);

    bool isAddition(const llvm::Instruction &instruction) const;

    // Emits the payments. Where nothing is owed, whatever way the function took, nothing is
    // emitted.
    void pay(Payer &payer);

  private:
    struct Settlement {
        llvm::CallInst   *place; // a call that stands for the payment; its argument is the sum
        llvm::AllocaInst *fuel;
    };

    llvm::Function                   &function;
    llvm::AllocaInst                 *sum;
    llvm::Function                   *standIn;
    llvm::SmallVector<Settlement, 16> settlements;
};

} // namespace janus

#endif
