// SPDX-License-Identifier: MIT
//
// Hoist: marks of blocks that run equally often become one mark.
//
// Two blocks of one loop run equally often if the first dominates the second, the second
// postdominates the first, and no way leads from the first back to itself around the second. The
// marks of the second move to the first. So a straight way through a function pays once.
//
// Postdominance alone is not enough: if a loop can end only behind its second half, that half
// postdominates the first, but `continue` in the first half leaves it out.
#include "cc/pass/names.h"
#include "cc/pass/steps.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/CFG.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>

using namespace llvm;

namespace janus
{

enum {
    stepsMax = 64, // dominators looked at for one block
    waysMax = 256, // blocks looked at between two
};

// A payment that moves ahead of a call is lost or doubled if the call returns twice or throws. The
// library's own calls read the fuel, as janus_budget_get_current does, and note the time in ops. So
// they must find exactly what the source has paid until then. In a function that is JANUS_OWN_OPS
// any call may lead to such a call, and must find the same.
static bool isFence(const Instruction &instruction)
{
    auto *call = dyn_cast<CallBase>(&instruction);
    if (!call) return false;
    const Function *callee = call->getCalledFunction();
    if (call->getFunction()->hasFnAttribute(attrOwnOps) && !isPlain(*call)) return true;
    return returnsTwice(*call) || mayThrowOut(*call) ||
           (callee && isRuntimeName(callee->getName()));
}

static bool hasFence(const BasicBlock *block)
{
    for (const Instruction &instruction : *block)
        if (isFence(instruction)) return true;
    return false;
}

// Moves constant marks of a block to its begin, or behind the last fence before them.
static void gatherInBlock(BasicBlock &block)
{
    Instruction *begin = nullptr;
    for (Instruction *at = &*block.getFirstInsertionPt(); at;) {
        Instruction *next = at->getNextNode();
        uint64_t     cost;
        StoreInst   *mark = asMark(*at);
        if (!begin) begin = at;
        if (mark && constantCost(mark, cost) && mark != begin) mark->moveBefore(begin);
        if (isFence(*at)) begin = next;
        at = next;
    }
}

class Hoister
{
  public:
    explicit Hoister(Function &function)
        : dominators(function), postdominators(function), loops(dominators)
    {
        ReversePostOrderTraversal<Function *> order(&function);
        irreducible = containsIrreducibleCFG<BasicBlock *>(order, loops);
        for (BasicBlock &block : function)
            if (hasFence(&block)) fenced = true;
    }

    void hoist(BasicBlock &block);

    bool irreducible; // LoopInfo does not know such cycles: nothing is hoisted then

  private:
    BasicBlock *earliest(BasicBlock &block);

    DominatorTree     dominators;
    PostDominatorTree postdominators;
    LoopInfo          loops;
    bool              fenced = false; // some call of the function is a fence
};

// Whether a way leads from a block back to itself without the other block. If there are too many
// ways to look at, it says yes.
static bool comesBackAround(BasicBlock *block, const BasicBlock *other)
{
    SmallPtrSet<BasicBlock *, 32> seen;
    SmallVector<BasicBlock *, 32> ways(successors(block));
    while (!ways.empty()) {
        BasicBlock *at = ways.pop_back_val();
        if (at == block || seen.size() >= waysMax) return true;
        if (at == other || !seen.insert(at).second) continue;
        ways.append(succ_begin(at), succ_end(at));
    }
    return false;
}

// The earliest block that runs as often as this one.
BasicBlock *Hoister::earliest(BasicBlock &block)
{
    Loop       *loop = loops.getLoopFor(&block);
    BasicBlock *best = nullptr;
    auto       *node = dominators.getNode(&block)->getIDom();
    for (unsigned steps = 0; node && steps < stepsMax; node = node->getIDom(), steps++) {
        BasicBlock *above = node->getBlock();
        if (loop && !loop->contains(above)) break;
        if (loops.getLoopFor(above) != loop) continue;
        if (!postdominators.dominates(&block, above)) continue;
        if (!loop || !comesBackAround(above, &block)) best = above;
    }
    return best;
}

void Hoister::hoist(BasicBlock &block)
{
    SmallVector<StoreInst *, 4> marks;
    for (Instruction &instruction : block) {
        uint64_t   cost;
        StoreInst *mark = asMark(instruction);
        if (mark && constantCost(mark, cost)) marks.push_back(mark);
        if (isFence(instruction)) break;
    }
    // A call that may throw ends a block's run without an edge, so blocks behind it run less often.
    if (marks.empty() || fenced || !dominators.getNode(&block)) return;
    BasicBlock *to = earliest(block);
    if (!to) return;
    for (StoreInst *mark : marks) mark->moveBefore(&*to->getFirstInsertionPt());
}

void hoistMarks(Function &function)
{
    if (anyReturnsTwice(function)) return;
    Hoister hoister(function);
    if (!hoister.irreducible)
        for (BasicBlock &block : function) hoister.hoist(block);
    for (BasicBlock &block : function) gatherInBlock(block);
}

} // namespace janus
