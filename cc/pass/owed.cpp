// SPDX-License-Identifier: MIT
#include "cc/pass/owed.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

using namespace llvm;

namespace janus
{

Owed::Owed(Function &forFunction) : function(forFunction)
{
    IRBuilder<> builder(&*function.getEntryBlock().getFirstInsertionPt());
    Type       *word = builder.getInt64Ty();
    sum = builder.CreateAlloca(word, nullptr, "owed");
    builder.CreateStore(builder.getInt64(0), sum);
    standIn = Function::Create(FunctionType::get(builder.getVoidTy(), {word}, false),
                               GlobalValue::ExternalLinkage, "janus.settle", function.getParent());
}

void Owed::add(Instruction *before, Value *cost)
{
    IRBuilder<> builder(before);
    builder.CreateStore(builder.CreateAdd(builder.CreateLoad(cost->getType(), sum), cost), sum);
}

void Owed::settle(Instruction *before, AllocaInst *fuel)
{
    IRBuilder<> builder(before);
    Value      *due = builder.CreateLoad(builder.getInt64Ty(), sum);
    settlements.push_back({builder.CreateCall(standIn, {due}), fuel});
    builder.CreateStore(builder.getInt64(0), sum);
}

bool Owed::isAddition(const Instruction &instruction) const
{
    auto *store = dyn_cast<StoreInst>(&instruction);
    return store && store->getPointerOperand() == sum;
}

// Finds the sums that are constant. A sum is unknown until a way to it is seen, then a constant,
// then perhaps variable. So sums that only loops carry round are found too.
class SumFinder
{
  public:
    void collect(Value *root);
    void run();
    bool constant(Value *value, uint64_t &out);

  private:
    enum Kind { Unknown, Constant, Variable };
    struct State {
        Kind     kind = Unknown;
        uint64_t value = 0;
    };

    State       stateOf(Value *value);
    State       meet(const PHINode &phi);
    State       meet(Instruction &instruction);
    static bool raise(State &state, const State &to);

    SetVector<Instruction *>       sums;
    DenseMap<Instruction *, State> states;
};

void SumFinder::collect(Value *root)
{
    SmallVector<Value *, 16> todo{root};
    while (!todo.empty()) {
        auto *instruction = dyn_cast<Instruction>(todo.pop_back_val());
        bool  isSum = instruction &&
                     (isa<PHINode>(instruction) || instruction->getOpcode() == Instruction::Add);
        if (!isSum || !sums.insert(instruction)) continue;
        todo.append(instruction->op_begin(), instruction->op_end());
    }
}

void SumFinder::run()
{
    for (bool changed = true; changed;) {
        changed = false;
        for (Instruction *sum : sums) {
            State state = meet(*sum);
            changed |= raise(states[sum], state);
        }
    }
}

bool SumFinder::constant(Value *value, uint64_t &out)
{
    State state = stateOf(value);
    out = state.value;
    return state.kind == Constant;
}

SumFinder::State SumFinder::stateOf(Value *value)
{
    if (auto *constant = dyn_cast<ConstantInt>(value)) return {Constant, constant->getZExtValue()};
    if (isa<UndefValue>(value)) return {}; // no way leads here
    auto *instruction = dyn_cast<Instruction>(value);
    if (!instruction || !sums.count(instruction)) return {Variable, 0};
    return states.lookup(instruction);
}

SumFinder::State SumFinder::meet(const PHINode &phi)
{
    State result;
    for (Value *incoming : phi.incoming_values()) {
        State state = stateOf(incoming);
        if (state.kind == Unknown) continue;
        if (result.kind == Unknown)
            result = state;
        else if (state.kind == Variable || state.value != result.value)
            return {Variable, 0};
    }
    return result;
}

SumFinder::State SumFinder::meet(Instruction &instruction)
{
    if (auto *phi = dyn_cast<PHINode>(&instruction)) return meet(*phi);
    State left = stateOf(instruction.getOperand(0)), right = stateOf(instruction.getOperand(1));
    if (left.kind == Unknown || right.kind == Unknown) return {};
    if (left.kind == Variable || right.kind == Variable) return {Variable, 0};
    return {Constant, left.value + right.value};
}

// States only rise, so the search ends.
bool SumFinder::raise(State &state, const State &to)
{
    if (state.kind == Variable || (state.kind == to.kind && state.value == to.value)) return false;
    state = state.kind == Constant ? State{Variable, 0} : to;
    return true;
}

void Owed::pay(Payer &payer)
{
    {
        DominatorTree dominators(function);
        PromoteMemToReg({sum}, dominators);
    }
    SumFinder finder;
    for (auto &settlement : settlements) finder.collect(settlement.place->getArgOperand(0));
    finder.run();
    for (auto &settlement : settlements) {
        Value   *due = settlement.place->getArgOperand(0);
        uint64_t constant;
        bool     known = finder.constant(due, constant);
        if (known) due = ConstantInt::get(due->getType(), constant);
        if (!known || constant != 0) payer.pay(settlement.place, due, settlement.fuel);
        settlement.place->eraseFromParent();
    }
    standIn->eraseFromParent();
}

} // namespace janus
