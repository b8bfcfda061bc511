// SPDX-License-Identifier: MIT
//
// The first half: marks on the control-flow graph as the front end made it, before any
// optimisation. Therefore the number of ops does not depend on what the optimiser does later.
//
//   - one for each retreating edge taken;
//   - one for each call;
//   - memcpy, memmove, memset: one for each full 64 bytes, and one more if the length is no
//     constant;
//   - janus_op(n): n.
#include "cc/pass/names.h"
#include "cc/pass/steps.h"
#include "cc/pass/versions.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

using namespace llvm;

namespace janus
{

static const char *const noOpsAnnotation = "janus.no_ops";
static const char *const ownOpsAnnotation = "janus.own_ops";

// The length that a call copies or fills, or null. With -fno-builtin, and with _FORTIFY_SOURCE, the
// memory functions are ordinary calls.
static Value *memoryLength(CallBase &call)
{
    if (auto *intrinsic = dyn_cast<MemIntrinsic>(&call)) return intrinsic->getLength();
    const Function *callee = call.getCalledFunction();
    if (!callee || call.arg_size() < 3) return nullptr;
    StringRef name = callee->getName();
    bool      memory = name == "memcpy" || name == "memmove" || name == "memset" ||
                  name == "__memcpy_chk" || name == "__memmove_chk" || name == "__memset_chk";
    Value *length = memory ? call.getArgOperand(2) : nullptr;
    return length && length->getType()->isIntegerTy() ? length : nullptr;
}

// Whether clang copies a struct here to pass it by value. Some CPUs pass such a struct without a
// copy in the code, so nobody counts the copy. The driver keeps clang's name of the place.
static bool copiesArgument(const CallBase &call)
{
    if (!isa<MemCpyInst>(call)) return false;
    auto *place = dyn_cast<AllocaInst>(call.getArgOperand(0)->stripPointerCasts());
    return place && startsWith(place->getName(), "byval-temp");
}

static bool markMemory(CallBase &call, Value *length, bool wrap)
{
    if (copiesArgument(call)) return false;
    if (wrap && wrapsMemory(call, length)) { // the wrapper pays for the bytes
        bool constant = isa<ConstantInt>(length);
        if (!constant) putMark(&call, 1);
        wrapMemory(call);
        return !constant;
    }
    if (auto *constant = dyn_cast<ConstantInt>(length)) {
        uint64_t cost = constant->getZExtValue() / 64;
        if (cost > 0) putMark(&call, cost);
        return cost > 0;
    }
    IRBuilder<> builder(&call);
    Value      *bytes = builder.CreateZExtOrTrunc(length, builder.getInt64Ty());
    putMark(&call, builder.CreateAdd(builder.CreateLShr(bytes, 6), builder.getInt64(1)));
    return true;
}

// janus_op(cost): the call becomes a mark. Marks are added up and multiplied by rounds. So a cost
// that could make such a sum overflow stays a call, and the runtime pays it.
static bool markExplicit(CallBase &call)
{
    const Function *callee = call.getCalledFunction();
    if (!callee || callee->getName() != "janus_op" || call.arg_size() != 1 || !isa<CallInst>(call))
        return false;
    auto *cost = dyn_cast<ConstantInt>(call.getArgOperand(0));
    if (!cost || cost->getBitWidth() != 64 || cost->getZExtValue() > UINT32_MAX) return false;
    putMark(&call, cost);
    call.eraseFromParent();
    return true;
}

static bool markCall(CallBase &call, bool wrap)
{
    if (markExplicit(call)) return true;
    if (Value *length = memoryLength(call)) return markMemory(call, length, wrap);
    if (!isCounted(call)) return false;
    if (wrap) wrapCall(call);
    putMark(&call, 1);
    return true;
}

// Operations on wide integers (_BitInt): the code generator makes loops of divisions, a round for
// each bit, and of multiplications a product for each pair of words.
static bool markWide(Instruction &instruction)
{
    auto *type = dyn_cast<IntegerType>(instruction.getType());
    if (!type || type->getBitWidth() <= 128) return false;
    uint64_t bits = type->getBitWidth(), cost;
    switch (instruction.getOpcode()) {
    case Instruction::UDiv:
    case Instruction::SDiv:
    case Instruction::URem:
    case Instruction::SRem: cost = bits * (1 + bits / 64); break;
    case Instruction::Mul: cost = (bits / 64) * (bits / 64) / 64; break;
    default: return false;
    }
    if (cost == 0) return false;
    putMark(&instruction, cost);
    return true;
}

// True if a block can be put on the edge.
static bool canSplit(const Edge &edge)
{
    Instruction *end = edge.from->getTerminator();
    if (isa<BranchInst>(end) || isa<SwitchInst>(end)) return true;
    auto *invoke = dyn_cast<InvokeInst>(end);
    return invoke && invoke->getNormalDest() == edge.to;
}

static unsigned markEdges(ArrayRef<Edge> edges)
{
    unsigned                     marks = 0;
    SmallPtrSet<BasicBlock *, 4> paid; // blocks that pay each time they end, wherever they go
    for (const Edge &edge : edges) {
        Instruction *end = edge.from->getTerminator();
        if (canSplit(edge)) {
            bool alone = isa<BranchInst>(end) && end->getNumSuccessors() == 1;
            putMark(alone ? end : splitEdge(edge.from, edge.to)->getTerminator(), 1);
            marks++;
        } else if (paid.insert(edge.from).second) {
            putMark(end, 1); // computed goto, asm goto, an invoke that unwinds backwards
            marks++;
        }
    }
    return marks;
}

// Calls of functions with free names cost nothing. If such a function could come back to itself by
// free calls alone, it would run for ever without an op: so it pays when it begins. That concerns
// functions of such a name that other objects see, and those that reach themselves in this module.
static bool mayCycleFree(Function &function)
{
    if (!isFreeName(function.getName())) return false;
    if (isRuntimeName(function.getName()) && !function.hasLocalLinkage()) return true;
    SmallPtrSet<Function *, 16> seen;
    SmallVector<Function *, 16> todo{&function};
    while (!todo.empty())
        for (Instruction &instruction : instructions(*todo.pop_back_val())) {
            auto     *call = dyn_cast<CallBase>(&instruction);
            Function *callee = call ? call->getCalledFunction() : nullptr;
            if (!callee || callee->isDeclaration() || !isFreeName(callee->getName())) continue;
            if (callee == &function) return true;
            if (seen.insert(callee).second) todo.push_back(callee);
        }
    return false;
}

static unsigned markFunction(Function &function, bool wrap, bool pays)
{
    SmallVector<Edge, 16>          edges = retreatingEdges(function);
    SmallVector<CallBase *, 32>    calls;
    SmallVector<Instruction *, 32> others;
    for (Instruction &instruction : instructions(function))
        if (auto *call = dyn_cast<CallBase>(&instruction))
            calls.push_back(call);
        else
            others.push_back(&instruction);
    unsigned marks = 0;
    for (Instruction *instruction : others)
        if (markWide(*instruction)) marks++;
    if (pays) {
        putMark(&*function.getEntryBlock().getFirstInsertionPt(), 1);
        marks++;
    }
    for (CallBase *call : calls)
        if (markCall(*call, wrap)) marks++;
    return marks + markEdges(edges);
}

static SmallPtrSet<const Function *, 8> annotated(const Module &module, StringRef annotation)
{
    SmallPtrSet<const Function *, 8> found;
    const GlobalVariable            *list = module.getNamedGlobal("llvm.global.annotations");
    auto *entries = list ? dyn_cast<ConstantArray>(list->getInitializer()) : nullptr;
    for (unsigned i = 0; entries && i < entries->getNumOperands(); i++) {
        auto *entry = cast<ConstantStruct>(entries->getOperand(i));
        auto *function = dyn_cast<Function>(entry->getOperand(0)->stripPointerCasts());
        auto *text = dyn_cast<GlobalVariable>(entry->getOperand(1)->stripPointerCasts());
        auto *bytes = text ? dyn_cast<ConstantDataArray>(text->getInitializer()) : nullptr;
        if (function && bytes && bytes->isCString() && bytes->getAsCString() == annotation)
            found.insert(function);
    }
    return found;
}

SmallPtrSet<const Function *, 8> freeFunctions(const Module &module)
{
    return annotated(module, noOpsAnnotation);
}

SmallPtrSet<const Function *, 8> ownFunctions(const Module &module)
{
    return annotated(module, ownOpsAnnotation);
}

// A function that says by janus_op what it pays: another compiler has counted it.
static unsigned markOwn(Function &function)
{
    unsigned                    marks = 0;
    SmallVector<CallBase *, 32> calls;
    for (Instruction &instruction : instructions(function))
        if (auto *call = dyn_cast<CallBase>(&instruction)) calls.push_back(call);
    for (CallBase *call : calls)
        if (markExplicit(*call)) marks++;
    function.addFnAttr(attrOwnOps);
    return marks;
}

// Inlined into another function, it would lose its attribute, and its payments could move.
static void keepApart(Function &function, const SmallPtrSet<const Function *, 8> &own)
{
    for (Instruction &instruction : instructions(function)) {
        auto *call = dyn_cast<CallBase>(&instruction);
        if (call && own.count(call->getCalledFunction())) call->setIsNoInline();
    }
}

// A body that only helps to inline a function of another object: C99's inline, extern templates,
// glibc's extern inlines. That object may be a library without marks, so the count would depend on
// the inliner. Such a call costs one op and what the other object pays.
static bool isBorrowedBody(const Function &function)
{
    return function.hasAvailableExternallyLinkage() &&
           !function.hasFnAttribute(Attribute::AlwaysInline);
}

// A function that pays is not pure, whatever its declaration says: the optimiser must not drop a
// call with ops inside it. A function of another object may have been built by this pass too. And
// functions that tell which thread runs give another answer after a yield.
static void forgetAttributes(Module &module, ModuleAnalysisManager &analyses)
{
    auto &functions = analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
    for (Function &function : module) {
        if (function.isIntrinsic() || function.hasFnAttribute(attrQuick)) continue;
        LibFunc known;
        bool    library = function.isDeclaration() &&
                       functions.getResult<TargetLibraryAnalysis>(function).getLibFunc(
                           function.getName(), known);
        if (library && !isThreadIdentity(function.getName())) continue;
        forgetPurity(function);
        for (User *user : function.users())
            if (auto *call = dyn_cast<CallBase>(user))
                if (call->getCalledFunction() == &function) forgetPurity(*call);
    }
    for (Function &function : module) // indirect calls with such attributes of their own
        for (BasicBlock &block : function)
            for (Instruction &instruction : block)
                if (auto *call = dyn_cast<CallBase>(&instruction))
                    if (call->isIndirectCall()) forgetPurity(*call);
}

// True if callers may keep their fuel in a register, or owe ops, while the function runs: it costs
// nothing and reaches no other code. A weak function may get another body from another object; so
// may an inline function of C++, if it is untrusted code that breaks the rule of one definition.
static bool isQuickBody(const Function &function, bool untrusted)
{
    if (function.isInterposable() || (untrusted && !function.isDefinitionExact())) return false;
    for (const BasicBlock &block : function)
        for (const Instruction &instruction : block)
            if (auto *call = dyn_cast<CallBase>(&instruction))
                if (!isPlain(*call)) return false;
    return true;
}

// Clang answers __builtin_constant_p with "no" at -O0, and later elsewhere. A program may take
// another way then, so the answer is "no" everywhere.
static void answerConstant(Function &function)
{
    for (BasicBlock &block : function)
        for (Instruction &instruction : make_early_inc_range(block)) {
            auto *question = dyn_cast<IntrinsicInst>(&instruction);
            if (!question || question->getIntrinsicID() != Intrinsic::is_constant) continue;
            question->replaceAllUsesWith(ConstantInt::getFalse(question->getContext()));
            question->eraseFromParent();
        }
}

static void forgetThreadAddresses(Function &function)
{
    for (BasicBlock &block : function)
        for (Instruction &instruction : make_early_inc_range(block)) {
            auto *address = dyn_cast<IntrinsicInst>(&instruction);
            if (!address || !isThreadLocalAddress(*address)) continue;
            address->replaceAllUsesWith(address->getArgOperand(0));
            address->eraseFromParent();
        }
}

void markModule(Module &module, ModuleAnalysisManager &analyses, const Options &options)
{
    SmallPtrSet<const Function *, 8> free = freeFunctions(module), own = ownFunctions(module);
    for (Function &function : module) // whatever its declaration says
        for (Instruction &instruction : instructions(function))
            if (auto *call = dyn_cast<CallBase>(&instruction))
                if (isTwiceName(call->getCalledOperand()->stripPointerCasts()->getName()))
                    call->addFnAttr(Attribute::ReturnsTwice);
    for (Function &function : module) {
        if (!isBorrowedBody(function)) continue;
        function.deleteBody();
        function.setComdat(nullptr);
    }
    for (Function &function : module) {
        if (function.isDeclaration()) continue;
        if (function.hasFnAttribute(Attribute::Naked) || free.count(&function)) continue;
        answerConstant(function);
        forgetThreadAddresses(function);
        if (!own.empty() && !own.count(&function)) keepApart(function, own);
        unsigned marks = own.count(&function)
                             ? markOwn(function)
                             : markFunction(function, options.wrap, mayCycleFree(function));
        if (marks == 0 && isQuickBody(function, options.untrusted))
            function.addFnAttr(attrQuick);
        else if (marks > 0)
            function.addFnAttr(attrMarks, std::to_string(marks));
    }
    if (options.wrap && options.untrusted) wrapPointers(module);
    forgetAttributes(module, analyses);
}

} // namespace janus
