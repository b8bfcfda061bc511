// SPDX-License-Identifier: MIT
#include "cc/pass/steps.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/IR/Instructions.h>

#include <vector>

using namespace llvm;

namespace janus
{

SmallVector<Edge, 16> retreatingEdges(Function &function)
{
    enum Colour { White, Grey, Black }; // grey: on the way from the entry to here
    struct Visit {
        BasicBlock *block;
        unsigned    next; // the successor to look at
    };
    DenseMap<const BasicBlock *, Colour>             colours;
    SetVector<std::pair<BasicBlock *, BasicBlock *>> found;
    std::vector<Visit>                               path{{&function.getEntryBlock(), 0}};
    colours[path.back().block] = Grey;
    while (!path.empty()) {
        BasicBlock  *block = path.back().block;
        Instruction *end = block->getTerminator();
        if (path.back().next == end->getNumSuccessors()) {
            colours[block] = Black;
            path.pop_back();
            continue;
        }
        BasicBlock *to = end->getSuccessor(path.back().next++);
        Colour     &colour = colours[to];
        if (colour == Grey) found.insert({block, to});
        if (colour != White) continue;
        colour = Grey;
        path.push_back({to, 0});
    }
    SmallVector<Edge, 16> edges;
    for (auto [from, to] : found) edges.push_back({from, to});
    return edges;
}

BasicBlock *splitEdge(BasicBlock *from, BasicBlock *to)
{
    BasicBlock *middle = BasicBlock::Create(from->getContext(), "edge", from->getParent(), to);
    BranchInst::Create(to, middle);
    Instruction *end = from->getTerminator();
    for (unsigned i = 0; i < end->getNumSuccessors(); i++)
        if (end->getSuccessor(i) == to) end->setSuccessor(i, middle);
    for (PHINode &phi : to->phis()) {
        bool moved = false;
        for (unsigned i = 0; i < phi.getNumIncomingValues();) {
            if (phi.getIncomingBlock(i) != from)
                i++;
            else if (moved)
                phi.removeIncomingValue(i, false); // a switch with several such cases
            else
                phi.setIncomingBlock(i++, middle), moved = true;
        }
    }
    return middle;
}

} // namespace janus
