// SPDX-License-Identifier: MIT
#include "cc/pass/pay.h"

#include "cc/pass/names.h"
#include "cc/pass/versions.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

using namespace llvm;

namespace janus
{

enum : uint64_t {
    ownSlowPaths = 8, // cc/support/pay_x86_64.S
    portionsMax = 16, // a larger payment is what the source asks for
};

static const char *const requestName = "janus.strip";

static GlobalVariable *fuelVariable(Module &module, Type *word, bool localExec)
{
    GlobalVariable *variable = module.getGlobalVariable("janus_fuel");
    if (!variable)
        variable = new GlobalVariable(module, word, false, GlobalValue::ExternalLinkage, nullptr,
                                      "janus_fuel", nullptr, GlobalValue::InitialExecTLSModel);
    if (localExec) {
        variable->setThreadLocalMode(GlobalValue::LocalExecTLSModel);
        variable->setDSOLocal(true);
    }
    return variable;
}

Payer::Payer(Module &forModule, const Options &options)
    : module(forModule), context(forModule.getContext()), word(Type::getInt64Ty(context)),
      unlikely(MDBuilder(context).createBranchWeights(1, 1 << 20))
{
    arm = startsWith(module.getTargetTriple(), "aarch64");
    // Code for an executable reaches the word of a static runtime without a load from the GOT.
    bool executable =
        module.getPICLevel() == PICLevel::NotPIC || module.getPIELevel() != PIELevel::Default;
    localExec = executable && !options.sharedRuntime;
    variable = fuelVariable(module, word, localExec);
}

// The offset of the word from the thread pointer. It is the same on every thread.
Value *Payer::armOffset(IRBuilder<> &builder)
{
    const char *text = localExec ? "movz $0, #:tprel_g1:janus_fuel\n\t"
                                   "movk $0, #:tprel_g0_nc:janus_fuel"
                                 : "adrp $0, :gottprel:janus_fuel\n\t"
                                   "ldr $0, [$0, #:gottprel_lo12:janus_fuel]";
    auto       *type = FunctionType::get(word, false);
    return builder.CreateCall(type, InlineAsm::get(type, text, "=r", false));
}

static void keepFromSanitizers(Instruction *access)
{
    access->setMetadata("nosanitize", MDNode::get(access->getContext(), {}));
}

Value *Payer::load(IRBuilder<> &builder)
{
    if (arm) {
        auto *type = FunctionType::get(word, {word}, false);
        return builder.CreateCall(
            type, InlineAsm::get(type, "mrs $0, tpidr_el0\n\tldr $0, [$0, $1]", "=&r,r", true),
            {armOffset(builder)});
    }
    LoadInst *held = builder.CreateLoad(word, variable, "fuel");
    keepFromSanitizers(held);
    return held;
}

void Payer::store(IRBuilder<> &builder, Value *value)
{
    if (arm) {
        auto *type = FunctionType::get(word, {word, word}, false);
        builder.CreateCall(
            type, InlineAsm::get(type, "mrs $0, tpidr_el0\n\tstr $1, [$0, $2]", "=&r,r,r", true),
            {value, armOffset(builder)});
        return;
    }
    keepFromSanitizers(builder.CreateStore(value, variable));
}

Value *Payer::take(IRBuilder<> &builder, Value *cost)
{
    if (arm) {
        auto *result = StructType::get(word, word, word);
        auto *type = FunctionType::get(result, {word, word}, false);
        auto *code = InlineAsm::get(type,
                                    "mrs $0, tpidr_el0\n\tldr $1, [$0, $4]\n\t"
                                    "sub $2, $1, $3\n\tstr $2, [$0, $4]",
                                    "=&r,=&r,=&r,rI,r", true);
        return builder.CreateExtractValue(
            builder.CreateCall(type, code, {cost, armOffset(builder)}), 1);
    }
    Value *held = load(builder);
    store(builder, builder.CreateSub(held, cost));
    return held;
}

// True if the function may hold values in registers that only AVX has.
static bool mayUseAvx(const Function &function)
{
    return function.getFnAttribute("target-features").getValueAsString().contains("+avx");
}

// The slow paths keep registers, so that the code around a check need not save any.
// janus_check_stub keeps the general ones but r11 (LLVM's preserve_most). On x86-64 small costs
// have slow paths of their own, which need no argument and keep vector registers, too
// (preserve_all); but not those of AVX.
CallInst *Payer::createSlow(IRBuilder<> &builder, Value *cost)
{
    auto *constant = dyn_cast<ConstantInt>(cost);
    bool  small = !arm && constant && constant->getValue().ult(ownSlowPaths + 1) &&
                 !mayUseAvx(*builder.GetInsertBlock()->getParent());
    FunctionCallee slow =
        small ? module.getOrInsertFunction(
                    ("janus_cc_pay_" + Twine(constant->getZExtValue())).str(), builder.getVoidTy())
              : module.getOrInsertFunction("janus_check_stub", builder.getVoidTy(), word);
    auto convention = small ? CallingConv::PreserveAll : CallingConv::PreserveMost;
    if (auto *function = dyn_cast<Function>(slow.getCallee())) {
        function->setCallingConv(convention);
        function->addFnAttr(Attribute::Cold);
        function->addFnAttr(Attribute::NoUnwind);
        if (small) function->setDSOLocal(true);
    }
    CallInst *call = small ? builder.CreateCall(slow) : builder.CreateCall(slow, {cost});
    call->setCallingConv(convention);
    call->setDoesNotThrow();
    return call;
}

void Payer::callSlow(IRBuilder<> &builder, Value *cost, AllocaInst *fuel)
{
    if (fuel) store(builder, builder.CreateLoad(word, fuel));
    createSlow(builder, cost);
    if (fuel) builder.CreateStore(load(builder), fuel);
}

// A check before a computed goto changes the target instead of branching. So the block stays one
// block, and the code generator still gives each handler of an interpreter its own jump.
void Payer::jumpSlow(IndirectBrInst *jump, Value *borrows, Value *cost, AllocaInst *fuel)
{
    BasicBlock *block = jump->getParent();
    BasicBlock *slow = BasicBlock::Create(context, "slow", block->getParent());
    Value      *target = jump->getAddress();
    IRBuilder<> builder(slow);
    callSlow(builder, cost, fuel);
    IndirectBrInst *again = builder.CreateIndirectBr(target, jump->getNumDestinations());
    for (unsigned i = 0; i < jump->getNumDestinations(); i++) {
        BasicBlock *to = jump->getDestination(i);
        again->addDestination(to);
        for (PHINode &phi : to->phis()) phi.addIncoming(phi.getIncomingValueForBlock(block), slow);
    }
    builder.SetInsertPoint(jump);
    Value *address = builder.CreatePointerCast(BlockAddress::get(slow), target->getType());
    jump->setAddress(builder.CreateSelect(borrows, address, target));
    jump->addDestination(slow);
}

void Payer::pay(Instruction *at, Value *cost, AllocaInst *fuel)
{
    auto    *constant = dyn_cast<ConstantInt>(cost);
    uint64_t whole = constant ? constant->getZExtValue() : 0;
    if (whole <= paidAtOnceMax * portionsMax)
        for (; whole > paidAtOnceMax; whole -= paidAtOnceMax)
            payOnce(at, ConstantInt::get(word, paidAtOnceMax), fuel);
    payOnce(at, constant ? ConstantInt::get(word, whole) : cost, fuel);
}

void Payer::payOnce(Instruction *at, Value *cost, AllocaInst *fuel)
{
    IRBuilder<> builder(at);
    Value      *held;
    if (fuel) {
        held = builder.CreateLoad(word, fuel);
        builder.CreateStore(builder.CreateSub(held, cost), fuel);
    } else {
        held = take(builder, cost);
    }
    Value *borrows = builder.CreateICmpULT(held, cost);
    if (auto *constant = dyn_cast<ConstantInt>(borrows); constant && constant->isZero()) return;
    auto *jump = dyn_cast<IndirectBrInst>(at->getParent()->getTerminator());
    if (jump && (at == jump || at->getNextNode() == jump)) {
        jumpSlow(jump, borrows, cost, fuel);
        return;
    }
    IRBuilder<> slow(SplitBlockAndInsertIfThen(borrows, at, false, unlikely));
    callSlow(slow, cost, fuel);
}

void Payer::payStrip(CallInst *request, AllocaInst *fuel)
{
    Value       *rounds = request->getArgOperand(0), *cost = request->getArgOperand(1);
    IRBuilder<>  builder(request);
    Value       *held = fuel ? builder.CreateLoad(word, fuel) : load(builder);
    Value       *whole = builder.CreateMul(rounds, cost);
    Value       *lacks = builder.CreateICmpULT(held, whole);
    Instruction *few, *all;
    SplitBlockAndInsertIfThenElse(lacks, request, &few, &all, unlikely);

    IRBuilder<> rich(all);
    Value      *left = rich.CreateSub(held, whole);
    if (fuel)
        rich.CreateStore(left, fuel);
    else
        store(rich, left);

    IRBuilder<> poor(few);
    if (fuel) store(poor, held);
    FunctionCallee slow = module.getOrInsertFunction("janus_strip_slow", word, word, word);
    if (auto *function = dyn_cast<Function>(slow.getCallee())) {
        function->addFnAttr(Attribute::Cold);
        function->addFnAttr(Attribute::NoUnwind);
    }
    CallInst *part = poor.CreateCall(slow, {rounds, cost});
    part->setDoesNotThrow();
    if (fuel) poor.CreateStore(load(poor), fuel);

    builder.SetInsertPoint(request);
    PHINode *paid = builder.CreatePHI(word, 2, "paid");
    paid->addIncoming(part, few->getParent());
    paid->addIncoming(rounds, all->getParent());
    request->replaceAllUsesWith(paid);
    request->eraseFromParent();
}

void Payer::giveBack(CallInst *credit, uint64_t ops)
{
    IRBuilder<> builder(credit);
    store(builder, builder.CreateAdd(load(builder), builder.getInt64(ops)));
    credit->eraseFromParent();
}

void Payer::takeWord(Instruction *at, AllocaInst *fuel)
{
    IRBuilder<> builder(at);
    builder.CreateStore(load(builder), fuel);
}

void Payer::giveWord(Instruction *at, AllocaInst *fuel)
{
    IRBuilder<> builder(at);
    store(builder, builder.CreateLoad(word, fuel));
}

CallInst *stripRequest(IRBuilder<> &builder, Value *rounds, uint64_t cost)
{
    Module *module = builder.GetInsertBlock()->getModule();
    Type   *word = builder.getInt64Ty();
    return builder.CreateCall(module->getOrInsertFunction(requestName, word, word, word),
                              {rounds, builder.getInt64(cost)}, "paid");
}

CallInst *asStripRequest(Instruction &instruction)
{
    auto           *call = dyn_cast<CallInst>(&instruction);
    const Function *callee = call ? call->getCalledFunction() : nullptr;
    return callee && callee->getName() == requestName ? call : nullptr;
}

} // namespace janus
