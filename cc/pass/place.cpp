// SPDX-License-Identifier: MIT
//
// Where to pay.
//
//   Register   A loop that calls nothing keeps the fuel in a variable. Outside of the loop the word
//              has it.
//   Delay      Elsewhere ops are summed in a variable, `owed`. It is a constant along most ways.
//              What is owed is paid before calls that may look at the word, at returns, and at
//              back-edges of loops without such a place.
//
// Both variables are allocas until mem2reg makes them SSA values.
#include "cc/pass/names.h"
#include "cc/pass/owed.h"
#include "cc/pass/pay.h"
#include "cc/pass/steps.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

using namespace llvm;

namespace janus
{

static bool isBarrier(Instruction &instruction, const TargetLibraryInfo &library)
{
    auto *call = dyn_cast<CallBase>(&instruction);
    if (!call || asStripRequest(instruction)) return false;
    return !isQuick(*call, library) || mayThrowOut(*call);
}

// True if `instruction` only feeds the comparison that a block's branch looks at.
static bool feedsCondition(const Instruction *instruction)
{
    if (instruction->getType()->isIntegerTy(1))
        return isa<CmpInst>(instruction) || isa<BinaryOperator>(instruction) ||
               isa<SelectInst>(instruction);
    if (!instruction->hasOneUse()) return false;
    if (auto *load = dyn_cast<LoadInst>(instruction)) return load->isSimple();
    return isa<CastInst>(instruction) || isa<GetElementPtrInst>(instruction);
}

// The place before the comparison of the block's branch and the loads that only it uses. A payment
// between comparison and branch would keep the CPU from fusing them.
static Instruction *beforeCondition(BasicBlock *block)
{
    Instruction *end = block->getTerminator(), *best = end;
    auto        *branch = dyn_cast<BranchInst>(end);
    if (!branch || !branch->isConditional()) return end;
    SmallVector<Value *, 8> todo{branch->getCondition()};
    SmallPtrSet<Value *, 8> seen;
    while (!todo.empty()) {
        auto *instruction = dyn_cast<Instruction>(todo.pop_back_val());
        if (!instruction || instruction->getParent() != block || isa<PHINode>(instruction) ||
            !seen.insert(instruction).second || !feedsCondition(instruction))
            continue;
        if (instruction->comesBefore(best)) best = instruction;
        todo.append(instruction->op_begin(), instruction->op_end());
    }
    for (Instruction *at = best; at; at = at->getNextNode())
        if (isa<CallBase>(at) && !isa<IntrinsicInst>(at)) return end;
    return best;
}

// Before a return: ahead of a call in tail position, which stays one.
static Instruction *beforeReturn(Instruction *end)
{
    for (Instruction *at = end->getPrevNode(); at; at = at->getPrevNode()) {
        auto *call = dyn_cast<CallInst>(at);
        if (call && !isa<IntrinsicInst>(call)) return call->isTailCall() ? call : end;
        if (asMark(*at) || at->mayReadOrWriteMemory()) return end;
    }
    return end;
}

// A handler of an interpreter pays at its begin, see goto.cpp.
static bool isHandler(const BasicBlock *block)
{
    const BasicBlock *before = block->getSinglePredecessor();
    return before && isa<IndirectBrInst>(before->getTerminator());
}

// True if nothing but a computed goto can follow the block.
static bool leadsToGoto(const BasicBlock *block)
{
    for (unsigned steps = 0; block && steps < 4; steps++) {
        if (isa<IndirectBrInst>(block->getTerminator())) return true;
        block = block->getSingleSuccessor();
    }
    return false;
}

static Instruction *behindMarks(BasicBlock *block)
{
    Instruction *at = &*block->getFirstInsertionPt();
    while (asMark(*at)) at = at->getNextNode();
    return at;
}

class Placement
{
  public:
    Placement(Function &forFunction, const TargetLibraryInfo &forLibrary, const Options &forOptions,
              Facts &forFacts)
        : function(forFunction), library(forLibrary), options(forOptions), facts(forFacts),
          payer(*forFunction.getParent(), forOptions), owed(forFunction)
    {
    }

    void chooseRegisters();
    void placeOwed();
    void finish();

  private:
    bool fitsRegister(const Loop *loop);
    void enclose(ArrayRef<Loop *> chosen);
    void chargeInRegister(BasicBlock *block);
    void delayInBlock(BasicBlock *block);
    bool paysInRound(const LoopInfo &loops, const DominatorTree &dominators, const Edge &edge);
    void settleAt(BasicBlock *block);
    void payBackEdges();
    AllocaInst *fuelIn(BasicBlock *block) { return region.count(block) ? fuel : nullptr; }
    AllocaInst *fuelAtEnd(BasicBlock *block)
    {
        return is_contained(entries, block) ? fuel : fuelIn(block);
    }

    struct Charge {
        Instruction *at;
        Value       *cost;
    };

    Function                     &function;
    const TargetLibraryInfo      &library;
    const Options                &options;
    Facts                        &facts;
    Payer                         payer;
    Owed                          owed;
    AllocaInst                   *fuel = nullptr; // in the blocks of `region`
    SetVector<BasicBlock *>       region;
    SmallVector<BasicBlock *, 8>  entries, exits; // on the edges into the region, and out of it
    SmallVector<Charge, 16>       charges;
    SmallPtrSet<BasicBlock *, 16> paying; // blocks that pay what is owed
    SmallPtrSet<BasicBlock *, 16> owing;  // blocks that had marks
};

// A block can be put on an edge that begins with a branch or a switch.
static bool canSplitAfter(const BasicBlock *block)
{
    return isa<BranchInst>(block->getTerminator()) || isa<SwitchInst>(block->getTerminator());
}

// True if the loop can be left and entered with the fuel in a variable. Where a computed goto
// leaves the loop, the block that it reaches must belong to this loop alone.
static bool hasUsableEdges(const Loop *loop)
{
    for (BasicBlock *block : loop->blocks()) {
        Instruction *end = block->getTerminator();
        if (!canSplitAfter(block) && !isa<IndirectBrInst>(end) && !isa<UnreachableInst>(end))
            return false;
        for (BasicBlock *before : predecessors(block))
            if (!loop->contains(before) && !canSplitAfter(before)) return false;
        for (BasicBlock *after : successors(block)) {
            if (loop->contains(after) || canSplitAfter(block)) continue;
            for (BasicBlock *before : predecessors(after))
                if (!loop->contains(before)) return false;
        }
    }
    return true;
}

bool Placement::fitsRegister(const Loop *loop)
{
    if (!hasUsableEdges(loop)) return false;
    bool pays = false;
    for (BasicBlock *block : loop->blocks()) {
        for (Instruction &instruction : *block) {
            if (isBarrier(instruction, library)) return false;
            auto *call = dyn_cast<CallBase>(&instruction);
            if (call && !asStripRequest(instruction) && mayThrowOut(*call)) return false;
            pays |= asMark(instruction) || asStripRequest(instruction);
        }
    }
    return pays;
}

// Outermost loops that call nothing.
void Placement::chooseRegisters()
{
    DominatorTree          dominators(function);
    LoopInfo               loops(dominators);
    SmallVector<Loop *, 8> todo(loops.begin(), loops.end()), chosen;
    while (!todo.empty()) {
        Loop *loop = todo.pop_back_val();
        if (fitsRegister(loop))
            chosen.push_back(loop);
        else
            todo.append(loop->begin(), loop->end());
    }
    facts.inRegister += (unsigned)chosen.size();
    if (!chosen.empty()) enclose(chosen);
}

// The blocks of the loops use the variable; blocks on the edges fill it and give it back.
void Placement::enclose(ArrayRef<Loop *> chosen)
{
    IRBuilder<> builder(&*function.getEntryBlock().getFirstInsertionPt());
    fuel = builder.CreateAlloca(builder.getInt64Ty(), nullptr, "fuel");
    for (Loop *loop : chosen) region.insert(loop->block_begin(), loop->block_end());
    SetVector<std::pair<BasicBlock *, BasicBlock *>> in, out;
    for (BasicBlock *block : region) {
        for (BasicBlock *before : predecessors(block))
            if (!region.count(before)) in.insert({before, block});
        for (BasicBlock *after : successors(block))
            if (!region.count(after)) out.insert({block, after});
    }
    for (auto [from, to] : in) entries.push_back(splitEdge(from, to));
    SetVector<BasicBlock *> behind; // blocks that give the fuel back at their begin
    for (auto [from, to] : out) {
        if (canSplitAfter(from))
            behind.insert(splitEdge(from, to));
        else
            behind.insert(to);
    }
    exits.append(behind.begin(), behind.end());
}

// All marks of a block in the region become one payment.
void Placement::chargeInRegister(BasicBlock *block)
{
    IRBuilder<>                 builder(block->getContext());
    SmallVector<StoreInst *, 4> marks;
    Instruction                *at = isHandler(block) ? behindMarks(block) : beforeCondition(block);
    uint64_t                    sum = 0, cost;
    for (Instruction &instruction : *block) {
        StoreInst *mark = asMark(instruction);
        if (!mark) continue;
        marks.push_back(mark);
        if (constantCost(mark, cost))
            sum += cost;
        else if (at->comesBefore(mark))
            at = mark->getNextNode();
    }
    if (marks.empty()) return;
    while (asMark(*at)) at = at->getNextNode();
    builder.SetInsertPoint(at);
    Value *whole = builder.getInt64(sum);
    for (StoreInst *mark : marks) {
        if (!constantCost(mark, cost)) whole = builder.CreateAdd(whole, costOf(mark));
        mark->eraseFromParent();
    }
    charges.push_back({at, whole});
}

// Sums what the marks of a block cost, and pays before calls and returns.
void Placement::delayInBlock(BasicBlock *block)
{
    Instruction *pays = isHandler(block) ? behindMarks(block) : nullptr;
    for (Instruction *at = &block->front(); at;) {
        Instruction *next = at->getNextNode();
        if (at == pays) owed.settle(at, nullptr);
        if (StoreInst *mark = asMark(*at)) {
            uint64_t cost;
            bool     large = constantCost(mark, cost) && cost >= paidAtOnceMax / 4;
            owed.add(mark, costOf(mark));
            owing.insert(block);
            mark->eraseFromParent();
            if (!options.delay || large) owed.settle(next, nullptr);
        } else if (isBarrier(*at, library)) {
            owed.settle(at, nullptr);
            paying.insert(block);
        } else if (isa<ReturnInst>(at) || isa<ResumeInst>(at)) {
            owed.settle(beforeReturn(at), nullptr);
        } else if (isa<CallBase>(at) && !isa<IntrinsicInst>(at) && !asStripRequest(*at)) {
            facts.quick++;
        }
        at = next;
    }
}

// True if each round of the edge's loop passes a block that pays, or owes nothing: folded loops
// have no marks.
bool Placement::paysInRound(const LoopInfo &loops, const DominatorTree &dominators,
                            const Edge &edge)
{
    if (region.count(edge.from) && region.count(edge.to)) return true;
    Loop *loop = loops.getLoopFor(edge.to);
    if (!loop || loop->getHeader() != edge.to || !loop->contains(edge.from)) return false;
    for (BasicBlock *block : paying)
        if (loop->contains(block) && dominators.dominates(block, edge.from)) return true;
    for (BasicBlock *block : owing)
        if (loop->contains(block)) return false;
    return true;
}

// Pays at the end of a block. If it leads to a computed goto, its predecessors pay instead: then it
// can be copied to handlers as a whole.
void Placement::settleAt(BasicBlock *block)
{
    bool adds = false;
    for (Instruction &instruction : *block) adds |= owed.isAddition(instruction);
    if (!adds && !region.count(block) && leadsToGoto(block)) {
        for (BasicBlock *before : predecessors(block))
            if (canSplitAfter(before)) settleAt(before);
        return;
    }
    Instruction *at = beforeCondition(block);
    for (Instruction *behind = at; behind; behind = behind->getNextNode())
        if (owed.isAddition(*behind)) at = block->getTerminator();
    owed.settle(at, fuelAtEnd(block));
}

void Placement::payBackEdges()
{
    DominatorTree           dominators(function);
    LoopInfo                loops(dominators);
    SetVector<BasicBlock *> sources;
    for (const Edge &edge : retreatingEdges(function))
        if (!paysInRound(loops, dominators, edge)) sources.insert(edge.from);
    for (BasicBlock *block : sources) settleAt(block);
}

void Placement::placeOwed()
{
    for (BasicBlock &block : function) {
        if (region.count(&block))
            chargeInRegister(&block);
        else
            delayInBlock(&block);
    }
    payBackEdges();
    // On the way into the region the fuel is in the variable already.
    for (BasicBlock *entry : entries) owed.settle(entry->getTerminator(), fuel);
}

void Placement::finish()
{
    SmallVector<CallInst *, 8> requests, credits;
    for (BasicBlock &block : function)
        for (Instruction &instruction : block)
            if (CallInst *request = asStripRequest(instruction))
                requests.push_back(request);
            else if (CallInst *credit = asCredit(instruction))
                credits.push_back(credit);
    SmallVector<AllocaInst *, 8> homes; // where the fuel is, before the blocks are split
    for (CallInst *credit : credits) payer.giveBack(credit, 1);
    for (CallInst *request : requests) homes.push_back(fuelIn(request->getParent()));
    for (auto &charge : charges) payer.pay(charge.at, charge.cost, fuel);
    for (unsigned i = 0; i < requests.size(); i++) payer.payStrip(requests[i], homes[i]);
    owed.pay(payer);
    for (BasicBlock *entry : entries) payer.takeWord(&*entry->getFirstInsertionPt(), fuel);
    for (BasicBlock *exit : exits) payer.giveWord(&*exit->getFirstInsertionPt(), fuel);
    if (fuel) {
        DominatorTree dominators(function);
        PromoteMemToReg({fuel}, dominators);
    }
}

void placePayments(Function &function, const TargetLibraryInfo &library, const Options &options,
                   Facts &facts)
{
    Placement placement(function, library, options, facts);
    if (options.registers) placement.chooseRegisters();
    placement.placeOwed();
    placement.finish();
}

} // namespace janus
