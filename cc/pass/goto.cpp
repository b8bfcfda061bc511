// SPDX-License-Identifier: MIT
//
// Computed gotos: an interpreter's handlers pay where they begin.
//
// The front end gathers all computed gotos of a function in one block, the meeting place. The code
// generator copies its jump to the handlers, but only behind an unconditional branch. A payment at
// the end of a handler is a conditional one. So the op of a way to the meeting place moves across
// the jump, to the begin of each handler. Ways that cost nothing, as from the function's entry,
// first get that op as a credit.
#include "cc/pass/names.h"
#include "cc/pass/steps.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

using namespace llvm;

namespace janus
{

static const char *const creditName = "janus.credit";

CallInst *asCredit(Instruction &instruction)
{
    auto           *call = dyn_cast<CallInst>(&instruction);
    const Function *callee = call ? call->getCalledFunction() : nullptr;
    return callee && callee->getName() == creditName ? call : nullptr;
}

static void putCredit(Instruction *before)
{
    IRBuilder<>    builder(before);
    Module        *module = before->getModule();
    FunctionCallee credit = module->getOrInsertFunction(creditName, builder.getVoidTy());
    builder.CreateCall(credit)->setDoesNotThrow();
}

// The only block of the function with a computed goto, if it has nothing else.
static BasicBlock *meetingPlace(Function &function)
{
    BasicBlock *found = nullptr;
    for (BasicBlock &block : function) {
        if (!isa<IndirectBrInst>(block.getTerminator())) continue;
        if (found || block.getFirstNonPHI() != block.getTerminator()) return nullptr;
        found = &block;
    }
    return found;
}

class Sinker
{
  public:
    Sinker(Function &forFunction, const TargetLibraryInfo &forLibrary, BasicBlock *forJump)
        : library(forLibrary), jump(forJump), dominators(forFunction), loops(dominators)
    {
    }

    bool findWays();
    void sink();

  private:
    enum Found { None, Mark, Through, Unfit };
    bool  callsNothing(const Loop *loop) const;
    Found findMark(BasicBlock *block);

    const TargetLibraryInfo     &library;
    BasicBlock                  *jump;
    DominatorTree                dominators;
    LoopInfo                     loops;
    SmallVector<StoreInst *, 16> marks; // one on each way to the jump that costs something
    SmallVector<Edge, 4>         free;  // on the ways that cost nothing
};

bool Sinker::callsNothing(const Loop *loop) const
{
    for (BasicBlock *block : loop->blocks())
        for (Instruction &instruction : *block)
            if (auto *call = dyn_cast<CallBase>(&instruction))
                if (!isQuick(*call, library)) return false;
    return true;
}

// The last mark of a block, unless it belongs to a call that may look at the word.
Sinker::Found Sinker::findMark(BasicBlock *block)
{
    for (Instruction *at = block->getTerminator(); at; at = at->getPrevNode()) {
        uint64_t   cost;
        StoreInst *mark = asMark(*at);
        auto      *call = dyn_cast<CallBase>(at);
        if (mark && (!constantCost(mark, cost) || cost == 0)) return Unfit;
        if (call && !isQuick(*call, library)) return None;
        if (!mark) continue;
        marks.push_back(mark);
        return Mark;
    }
    return Through;
}

// Goes back from the jump to the marks of all ways. False if that does not pay.
bool Sinker::findWays()
{
    Loop *loop = loops.getLoopFor(jump);
    while (loop && loop->getParentLoop()) loop = loop->getParentLoop();
    if (!loop) return false;
    bool                                             calls = !callsNothing(loop);
    SetVector<std::pair<BasicBlock *, BasicBlock *>> ways;
    for (BasicBlock *before : predecessors(jump)) ways.insert({before, jump});
    for (unsigned i = 0; i < ways.size(); i++) {
        auto [block, to] = ways[i];
        auto *branch = dyn_cast<BranchInst>(block->getTerminator());
        bool  alone = branch && branch->isUnconditional();
        Found found = alone && loop->contains(block) ? findMark(block) : None;
        if (found == Mark) continue;
        if (found == Through) {
            for (BasicBlock *before : predecessors(block)) ways.insert({before, block});
            continue;
        }
        if (found == Unfit || (loop->contains(block) && !calls)) return false;
        if (!branch && !isa<SwitchInst>(block->getTerminator())) return false;
        free.push_back({block, to});
    }
    for (BasicBlock *handler : successors(jump)) // others must be able to go elsewhere
        for (BasicBlock *before : predecessors(handler))
            if (before != jump && !isa<BranchInst>(before->getTerminator()) &&
                !isa<SwitchInst>(before->getTerminator()))
                return false;
    return !marks.empty();
}

// From now on only the jump leads to the block. What else did goes to a new block behind its phis.
static void reserve(BasicBlock *block, BasicBlock *jump)
{
    SetVector<BasicBlock *> others;
    for (BasicBlock *before : predecessors(block))
        if (before != jump) others.insert(before);
    if (others.empty()) return;
    BasicBlock *body = block->splitBasicBlock(block->getFirstNonPHI(), "handler");
    for (BasicBlock *before : others) before->getTerminator()->replaceUsesOfWith(block, body);
    for (PHINode &phi : block->phis()) {
        PHINode *all = PHINode::Create(phi.getType(), 1 + others.size(), "", &body->front());
        phi.replaceAllUsesWith(all);
        all->addIncoming(&phi, block);
        for (BasicBlock *before : others)
            while (phi.getBasicBlockIndex(before) >= 0) {
                all->addIncoming(phi.getIncomingValueForBlock(before), before);
                phi.removeIncomingValue(before, false);
            }
    }
}

void Sinker::sink()
{
    for (StoreInst *mark : marks) {
        uint64_t cost = 0;
        if (constantCost(mark, cost) && cost > 1) putMark(mark, cost - 1);
        mark->eraseFromParent();
    }
    for (auto [from, to] : free) {
        bool alone = from->getSingleSuccessor() != nullptr;
        putCredit((alone ? from : splitEdge(from, to))->getTerminator());
    }
    SetVector<BasicBlock *> handlers;
    handlers.insert(succ_begin(jump), succ_end(jump));
    for (BasicBlock *block : handlers) {
        reserve(block, jump);
        putMark(&*block->getFirstInsertionPt(), 1);
    }
}

void sinkMarks(Function &function, const TargetLibraryInfo &library)
{
    BasicBlock *jump = meetingPlace(function);
    if (!jump || anyReturnsTwice(function)) return;
    Sinker sinker(function, library, jump);
    if (sinker.findWays()) sinker.sink();
}

} // namespace janus
