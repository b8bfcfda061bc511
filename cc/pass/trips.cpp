// SPDX-License-Identifier: MIT
//
// Loops whose number of rounds is known before they begin.
//
//   Fold    A loop of few rounds is paid before it begins.
//   Strip   A longer loop is cut into strips of at most stripRounds rounds. Each strip is paid
//           before it begins. The inner loop has no fuel code, so the vectoriser sees a plain
//           counted loop.
//
// A round of `for` and `while` pays in the round, `do … while` pays at the back-edge behind the
// test. Where both happen, or the number of rounds may be 2^64, back-edges are counted: the first
// round is paid in the preheader, and each back-edge pays for itself and for the round that
// follows.
#include "cc/pass/names.h"
#include "cc/pass/pay.h"
#include "cc/pass/steps.h"
#include "cc/pass/versions.h"

#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/Local.h>

using namespace llvm;

namespace janus
{

enum : uint64_t {
    stripRounds = 1024,     // rounds between two payments
    foldRoundsMax = 1024,   // rounds of a folded loop
    stripInstructions = 48, // larger bodies pay in each round, at a small part of their cost
    countCostMax = 8,       // instructions to compute the number of rounds
};

// A loop that can be paid ahead.
struct Trip {
    Loop                       *loop;
    BasicBlock                 *preheader, *header, *latch, *exiting, *exit;
    SmallVector<StoreInst *, 4> marks;
    uint64_t                    roundCost = 0; // marks on every way through a round
    uint64_t                    edgeCost = 0;  // marks between the exit's test and the header
    bool                        fold = false;
    Value                      *edges = nullptr;  // how often the back-edge will be taken
    bool                        byRounds = false; // strips count rounds, else back-edges
};

class TripFinder
{
  public:
    TripFinder(Function &forFunction, const TargetLibraryInfo &forLibrary,
               const Options &forOptions)
        : function(forFunction), library(forLibrary), options(forOptions), assumptions(function),
          dominators(function), loops(dominators),
          evolution(function, const_cast<TargetLibraryInfo &>(library), assumptions, dominators,
                    loops),
          layout(function.getParent()->getDataLayout()), costs(layout),
          expander(evolution, layout, "janus")
    {
    }

    // Folds what can be folded, inner loops first, and returns the loops to strip.
    SmallVector<Trip, 8> find(Facts &facts);

  private:
    bool describe(Loop *loop, Trip &trip);
    bool collectMarks(Trip &trip);
    bool chooseFold(Trip &trip);
    bool smallEnough(const Trip &trip) const;
    bool expandUpTo(Trip &trip);
    bool expandEdges(Trip &trip);

    Function                &function;
    const TargetLibraryInfo &library;
    const Options           &options;
    AssumptionCache          assumptions;
    DominatorTree            dominators;
    LoopInfo                 loops;
    ScalarEvolution          evolution;
    const DataLayout        &layout;
    TargetTransformInfo      costs;
    SCEVExpander             expander;
};

// True if nothing in the loop needs the right fuel, and nothing can leave it but its exit.
static bool isClosed(const Loop *loop, const TargetLibraryInfo &library)
{
    for (BasicBlock *block : loop->blocks()) {
        if (isa<InvokeInst>(block->getTerminator()) || isa<CallBrInst>(block->getTerminator()) ||
            isa<IndirectBrInst>(block->getTerminator()))
            return false;
        for (Instruction &instruction : *block)
            if (auto *call = dyn_cast<CallBase>(&instruction))
                if (asStripRequest(instruction) || !isQuick(*call, library) || mayThrowOut(*call))
                    return false;
    }
    return true;
}

bool TripFinder::describe(Loop *loop, Trip &trip)
{
    trip.loop = loop;
    trip.header = loop->getHeader();
    trip.preheader = loop->getLoopPreheader();
    trip.latch = loop->getLoopLatch();
    trip.exiting = loop->getExitingBlock();
    trip.exit = loop->getUniqueExitBlock();
    if (!trip.preheader || !trip.latch || !trip.exiting || !trip.exit) return false;
    if (!loop->hasDedicatedExits() || !isClosed(loop, library)) return false;
    auto *test = dyn_cast<BranchInst>(trip.exiting->getTerminator());
    if (!test || !test->isConditional()) return false;
    return trip.latch == trip.exiting || trip.latch->getSinglePredecessor() == trip.exiting;
}

// The marks of a round. False if a round does not always cost the same.
bool TripFinder::collectMarks(Trip &trip)
{
    for (BasicBlock *block : trip.loop->blocks())
        for (Instruction &instruction : *block) {
            bool behindTest = block == trip.latch && block != trip.exiting;
            if (StoreInst *mark = asMark(instruction)) {
                uint64_t cost;
                if (!constantCost(mark, cost) || cost > UINT32_MAX / 2) return false;
                if (loops.getLoopFor(block) != trip.loop) return false;
                if (!dominators.dominates(block, trip.latch)) return false;
                (behindTest ? trip.edgeCost : trip.roundCost) += cost;
                trip.marks.push_back(mark);
            } else if (behindTest && !instruction.isTerminator()) {
                return false; // work between the test and the header
            }
        }
    uint64_t cost = trip.roundCost + trip.edgeCost;
    return cost > 0 && cost <= UINT32_MAX / 2;
}

bool TripFinder::chooseFold(Trip &trip)
{
    uint64_t rounds = evolution.getSmallConstantMaxTripCount(trip.loop);
    if (!options.fold || rounds == 0 || rounds > foldRoundsMax) return false;
    return rounds * (trip.roundCost + trip.edgeCost) <= paidAtOnceMax;
}

bool TripFinder::smallEnough(const Trip &trip) const
{
    uint64_t instructions = 0;
    for (BasicBlock *block : trip.loop->blocks()) instructions += block->size();
    return instructions <= stripInstructions;
}

// `i <= n` without a sign. LLVM does not count such a loop, because it is endless if n is the
// largest number. Then the loop gets 2^64 - 1 back-edges, of which nobody sees the end.
bool TripFinder::expandUpTo(Trip &trip)
{
    auto *test = cast<BranchInst>(trip.exiting->getTerminator());
    auto *compare = dyn_cast<ICmpInst>(test->getCondition());
    if (!compare || !compare->getOperand(0)->getType()->isIntegerTy()) return false;
    bool        stays = trip.loop->contains(test->getSuccessor(0));
    auto        predicate = stays ? compare->getPredicate() : compare->getInversePredicate();
    bool        swapped = predicate == CmpInst::ICMP_UGE;
    const SCEV *last = evolution.getSCEV(compare->getOperand(swapped ? 0 : 1));
    auto       *number =
        dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(compare->getOperand(swapped ? 1 : 0)));
    if ((predicate != CmpInst::ICMP_ULE && !swapped) || !number || number->getLoop() != trip.loop)
        return false;
    Instruction *at = trip.preheader->getTerminator();
    const SCEV  *first = number->getStart();
    auto        *type = cast<IntegerType>(last->getType());
    if (!number->isAffine() || !number->getStepRecurrence(evolution)->isOne() ||
        type->getBitWidth() > 64 || !evolution.isLoopInvariant(last, trip.loop))
        return false;
    for (const SCEV *value : {first, last})
        if (!isSafeToExpand(expander, value, evolution) ||
            expander.isHighCostExpansion(value, trip.loop, countCostMax, &costs, at))
            return false;
    IRBuilder<> builder(at);
    Value      *from = expander.expandCodeFor(first, type, at);
    Value      *to = expander.expandCodeFor(last, type, at);
    Value      *edges = builder.CreateZExt(builder.CreateSub(to, from), builder.getInt64Ty());
    edges = builder.CreateAdd(edges, builder.getInt64(1));
    Value *endless = builder.CreateICmpEQ(to, ConstantInt::getAllOnesValue(type));
    edges = builder.CreateSelect(endless, builder.getInt64(UINT64_MAX), edges);
    Value *none = builder.CreateICmpUGT(from, to);
    trip.edges = builder.CreateSelect(none, builder.getInt64(0), edges);
    trip.byRounds = false;
    return true;
}

bool TripFinder::expandEdges(Trip &trip)
{
    const SCEV  *count = evolution.getBackedgeTakenCount(trip.loop);
    Instruction *at = trip.preheader->getTerminator();
    if (isa<SCEVCouldNotCompute>(count)) return !trip.fold && expandUpTo(trip);
    if (!count->getType()->isIntegerTy()) return false;
    if (count->getType()->getIntegerBitWidth() > 64) return false;
    if (!isSafeToExpand(expander, count, evolution)) return false;
    if (expander.isHighCostExpansion(count, trip.loop, countCostMax, &costs, at)) return false;
    IRBuilder<> builder(at);
    Value      *edges = expander.expandCodeFor(count, count->getType(), at);
    trip.edges = builder.CreateZExt(edges, builder.getInt64Ty());
    trip.byRounds = trip.edgeCost == 0 && !evolution.getUnsignedRangeMax(count).isMaxValue();
    if (count->getType()->getIntegerBitWidth() < 64) trip.byRounds = trip.edgeCost == 0;
    return true;
}

static void removeMarks(const Trip &trip)
{
    for (StoreInst *mark : trip.marks) mark->eraseFromParent();
}

static void payFirstRound(const Trip &trip)
{
    if (trip.roundCost > 0) putMark(trip.preheader->getTerminator(), trip.roundCost);
}

static void foldTrip(const Trip &trip)
{
    removeMarks(trip);
    payFirstRound(trip);
    IRBuilder<> builder(trip.preheader->getTerminator());
    Value *cost = builder.CreateMul(trip.edges, builder.getInt64(trip.roundCost + trip.edgeCost));
    putMark(trip.preheader->getTerminator(), cost);
}

SmallVector<Trip, 8> TripFinder::find(Facts &facts)
{
    SmallVector<Trip, 8>   strips;
    SmallVector<Loop *, 8> order = loops.getLoopsInPreorder();
    for (Loop *loop : reverse(order)) { // inner loops first
        Trip trip;
        if (!describe(loop, trip) || !collectMarks(trip)) continue;
        trip.fold = chooseFold(trip);
        if (!trip.fold && (!options.strip || !loop->isInnermost() || !smallEnough(trip))) continue;
        if (!expandEdges(trip)) continue;
        if (trip.fold) {
            foldTrip(trip);
            facts.folded++;
        } else {
            strips.push_back(trip);
        }
    }
    return strips;
}

// The blocks and values of a strip loop. `outer` pays, `end` leaves or goes back to `outer`.
struct Strip {
    BasicBlock                                     *outer, *end;
    PHINode                                        *left; // rounds or back-edges not yet paid
    Value                                          *paid; // rounds or back-edges of this strip
    Value                                          *last; // is this the last strip?
    Value                                          *stop; // number of the last round of this strip
    SmallVector<std::pair<PHINode *, PHINode *>, 8> carried; // of the header, of the outer header
};

// outer: pay for the next strip.
static void makeOuter(const Trip &trip, Strip &strip)
{
    Function   *function = trip.header->getParent();
    IRBuilder<> builder(function->getContext());
    strip.outer = BasicBlock::Create(function->getContext(), "strip", function, trip.header);
    trip.preheader->getTerminator()->replaceUsesOfWith(trip.header, strip.outer);
    builder.SetInsertPoint(strip.outer);
    for (PHINode &phi : trip.header->phis()) {
        PHINode *carried = builder.CreatePHI(phi.getType(), 2, phi.getName() + ".strip");
        int      entry = phi.getBasicBlockIndex(trip.preheader);
        carried->addIncoming(phi.getIncomingValue(entry), trip.preheader);
        phi.setIncomingValue(entry, carried);
        phi.setIncomingBlock(entry, strip.outer);
        strip.carried.push_back({&phi, carried});
    }
    strip.left = builder.CreatePHI(builder.getInt64Ty(), 2, "left");
    IRBuilder<> before(trip.preheader->getTerminator());
    Value      *all = trip.edges;
    if (trip.byRounds) all = before.CreateAdd(all, builder.getInt64(1), "rounds", true);
    strip.left->addIncoming(all, trip.preheader);
    Value *few = builder.CreateICmpULT(strip.left, builder.getInt64(stripRounds));
    Value *wanted = builder.CreateSelect(few, strip.left, builder.getInt64(stripRounds));
    strip.paid = stripRequest(builder, wanted, trip.roundCost + trip.edgeCost);
    strip.last = builder.CreateICmpEQ(strip.paid, strip.left, "last");
    // The last strip has one round more than back-edges.
    Value *less = builder.getInt64(1);
    if (!trip.byRounds)
        less = builder.CreateZExt(builder.CreateNot(strip.last), builder.getInt64Ty());
    strip.stop = builder.CreateSub(strip.paid, less, "stop");
    builder.CreateBr(trip.header);
}

// The inner loop counts its rounds and ends with the strip.
static void limitInner(const Trip &trip, const Strip &strip)
{
    Type    *word = strip.stop->getType();
    PHINode *round = PHINode::Create(word, 2, "round", &trip.header->front());
    auto    *test = cast<BranchInst>(trip.exiting->getTerminator());
    Value   *condition = test->getCondition();

    IRBuilder<> builder(test);
    Value      *next = builder.CreateAdd(round, builder.getInt64(1), "", true, true);
    round->addIncoming(builder.getInt64(0), strip.outer);
    round->addIncoming(next, trip.latch);
    Value      *done = builder.CreateICmpEQ(round, strip.stop);
    BasicBlock *stay = trip.latch == trip.exiting ? trip.header : trip.latch;
    BranchInst *inner = builder.CreateCondBr(done, strip.end, stay);
    inner->setMetadata(LLVMContext::MD_loop, test->getMetadata(LLVMContext::MD_loop));
    test->eraseFromParent();
    RecursivelyDeleteTriviallyDeadInstructions(condition);
}

// A value of the loop, as the block behind the loop sees it.
static Value *leave(const Trip &trip, BasicBlock *end, Value *value)
{
    auto *instruction = dyn_cast<Instruction>(value);
    if (!instruction || !trip.loop->contains(instruction)) return value;
    for (PHINode &phi : end->phis())
        if (phi.getIncomingValue(0) == value) return &phi;
    PHINode *phi = end->empty() ? PHINode::Create(value->getType(), 1, "", end)
                                : PHINode::Create(value->getType(), 1, "", &end->front());
    phi->addIncoming(value, trip.exiting);
    return phi;
}

static void stripTrip(const Trip &trip)
{
    Strip     strip;
    Function *function = trip.header->getParent();
    strip.end = BasicBlock::Create(function->getContext(), "strip.end", function, trip.exit);
    removeMarks(trip);
    if (!trip.byRounds) payFirstRound(trip);
    makeOuter(trip, strip);
    for (PHINode &phi : trip.exit->phis()) {
        int index = phi.getBasicBlockIndex(trip.exiting);
        phi.setIncomingValue(index, leave(trip, strip.end, phi.getIncomingValue(index)));
        phi.setIncomingBlock(index, strip.end);
    }
    for (auto [inner, carried] : strip.carried)
        carried->addIncoming(leave(trip, strip.end, inner->getIncomingValueForBlock(trip.latch)),
                             strip.end);
    IRBuilder<> builder(strip.end);
    strip.left->addIncoming(builder.CreateSub(strip.left, strip.paid), strip.end);
    builder.CreateCondBr(strip.last, trip.exit, strip.outer);
    limitInner(trip, strip);
}

void payTrips(Function &function, FunctionAnalysisManager &analyses, const Options &options,
              Facts &facts)
{
    if (!options.fold && !options.strip) return;
    auto                &library = analyses.getResult<TargetLibraryAnalysis>(function);
    TripFinder           finder(function, library, options);
    SmallVector<Trip, 8> strips = finder.find(facts);
    for (const Trip &trip : strips) stripTrip(trip);
    facts.stripped += (unsigned)strips.size();
}

} // namespace janus
